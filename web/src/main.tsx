import { render } from 'preact';
import { App } from './app';
import { openSession } from './live';
import 'uplot/dist/uPlot.min.css';
import './styles/base.css';
import './styles/frame.css';
import './styles/pages.css';

await openSession();
render(<App />, document.getElementById('app')!);
