// Results of experiments, the report in place, and how far a running one is.
import { useState } from 'preact/hooks';
import { api, type Schema } from '../client';
import { hostNow } from '../live';
import { duration, moment, plural } from '../model/format';
import { href } from '../model/router';
import { useAsk } from '../parts/use-ask';
import { Bar, Busy, Command, Empty, Note, Refused } from '../parts/words';
import { Lazy } from './map';

export function LabPage({ rest }: { rest: string }) {
  const asked = useAsk(() => api.lab(), 'lab', 3000);
  const lab = asked.value;
  const shown = lab?.results.find(r => r.id === rest) ?? null;
  return (
    <>
      <div class="page-head">
        <h1>Lab</h1>
        {lab && <span class="quantity">{lab.directory}</span>}
      </div>
      {asked.refusal && asked.refusal.kind !== 'gone' && <Refused refusal={asked.refusal} />}
      {lab?.problem && <Note kind="warning">{lab.problem}</Note>}
      {!lab && !asked.refusal && <Busy>Looking for results …</Busy>}
      {lab && (
        <div class={rest ? 'lab-body' : undefined}>
          <div>
            <Results results={lab.results} shown={rest} directory={lab.directory} />
            <Studies studies={lab.studies} />
          </div>
          {rest && (shown ? <Report result={shown} /> : <Note kind="warning">There is no result {rest} any more.</Note>)}
        </div>
      )}
    </>
  );
}

function Results({ results, shown, directory }: { results: readonly Schema['LabResult'][]; shown: string; directory: string }) {
  if (!results.length) {
    return (
      <Empty>
        There are no results in {directory}. A first experiment takes two minutes: <Command text="ringfence lab run tour" />
      </Empty>
    );
  }
  return (
    <section aria-label="Results">
      <ul class="plain results">
        {results.map(r => (
          <li key={r.id} class={r.id === shown ? 'chosen-row' : undefined}>
            <h2>{r.has_report ? <a href={href('lab', r.id)} aria-current={r.id === shown || undefined}>{r.title}</a> : r.title}</h2>
            <p class="numbers">
              {r.name} · {r.at_ms == null ? '–' : moment(r.at_ms / 1000, hostNow() / 1000)} · <State result={r} />
            </p>
            {r.headline && <p>{r.headline}</p>}
            {r.running && (
              <div role="progressbar" aria-label={`Runs of ${r.name}`} aria-valuemin={0} aria-valuemax={r.planned ?? undefined} aria-valuenow={r.runs}>
                <Bar used={r.runs} of={r.planned} />
              </div>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function State({ result: r }: { result: Schema['LabResult'] }) {
  const runs = r.planned == null ? plural(r.runs, 'run') : `${r.runs} of ${plural(r.planned, 'run')}`;
  if (r.running) return <b>running: {runs}</b>;
  return <>{r.complete ? runs : `ended early: ${runs}`}</>;
}

/** The report has no script, and the frame lets none run. */
function Report({ result }: { result: Schema['LabResult'] }) {
  const [loaded, setLoaded] = useState(false);
  if (!result.has_report) return <Empty>{result.running ? 'The report comes when the experiment has ended.' : 'This result has no report.'}</Empty>;
  return (
    <section class="report">
      <div class="section-head">
        <h2>{result.title}</h2>
        <a href={api.report(result.id)} target="_blank" rel="noreferrer">
          Open on its own
        </a>
        <a href={href('lab')}>Close</a>
      </div>
      {!loaded && <Busy>Reading the report …</Busy>}
      <iframe key={result.id} title={`Report: ${result.title}`} src={api.report(result.id)} sandbox="" onLoad={() => setLoaded(true)} />
    </section>
  );
}

function Studies({ studies }: { studies: readonly Schema['Study'][] }) {
  return (
    <Lazy title={`${plural(studies.length, 'experiment')} that come with ringfence`}>
      {() => (
        <table>
          <thead>
            <tr>
              <th scope="col">Experiment</th>
              <th scope="col">Takes</th>
              <th scope="col">Needs</th>
              <th scope="col">Command</th>
            </tr>
          </thead>
          <tbody>
            {studies.map(s => (
              <tr key={s.name}>
                <th scope="row">
                  {s.name}
                  <small>{s.title}</small>
                </th>
                <td>
                  {duration(s.seconds)}, quick {duration(s.quick_seconds)}
                </td>
                <td>
                  {plural(s.needs_cpus, 'CPU')}
                  {s.needs_nodes > 1 && `, ${plural(s.needs_nodes, 'node')}`}
                  {s.tools.length > 0 && `, ${s.tools.join(', ')}`}
                </td>
                <td>
                  <Command text={`ringfence lab run ${s.name}`} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Lazy>
  );
}
