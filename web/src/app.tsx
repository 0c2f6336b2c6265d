// The frame around all pages: where one is, who looks, what the connection does, and what waits to be confirmed.
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { href, parse, PAGES, type PageName, type Route } from './model/router';
import { live, start } from './live';
import { useStore } from './model/store';
import { Banners } from './parts/banners';
import { Shortcuts, useShortcuts } from './parts/shortcuts';
import { Status } from './parts/status';
import { MapPage } from './pages/map';
import { GroupsPage } from './pages/groups';
import { HistoryPage } from './pages/history';
import { PlanPage } from './pages/plan';
import { LabPage } from './pages/lab';
import { SimulatePage } from './pages/simulate';

const TITLES: Record<PageName, string> = {
  map: 'Machine',
  groups: 'Groups',
  history: 'History',
  plan: 'Plan',
  lab: 'Lab',
  simulate: 'Simulate',
};

const CONTENT: Record<PageName, ComponentType<{ rest: string }>> = {
  map: MapPage,
  groups: GroupsPage,
  history: HistoryPage,
  plan: PlanPage,
  lab: LabPage,
  simulate: SimulatePage,
};

function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const look = () => setRoute(parse(location.hash));
    addEventListener('hashchange', look);
    return () => removeEventListener('hashchange', look);
  }, []);
  return route;
}

export function App() {
  const route = useRoute();
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const host = useStore(live, l => l.session?.hostname ?? l.machine?.hostname ?? '');
  const first = useRef(true);
  useEffect(start, []);
  useShortcuts(() => setHelp(true));
  useEffect(() => {
    document.title = `${route.rest || TITLES[route.page]} · ${host ? `${host} · ` : ''}Ringfence`;
  }, [route.page, route.rest, host]);
  useEffect(() => {
    // who came by the keyboard goes on in the page rather than at its beginning
    if (!first.current) main.current?.focus({ preventScroll: true });
    first.current = false;
  }, [route.page, route.rest]);
  const Page = CONTENT[route.page];
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={e => (e.preventDefault(), main.current?.focus())}>
        Skip to the page
      </a>
      <header class="rail">
        <a class="brand" href={href('map')}>
          <Ring />
          <span class="brand-name">ringfence</span>{' '}
          <span class="brand-host">{host}</span>
        </a>
        <nav aria-label="Pages">
          <ul>
            {PAGES.map(page => (
              <li key={page}>
                <a href={href(page)} aria-current={route.page === page ? 'page' : undefined}>
                  {TITLES[page]}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Status onHelp={() => setHelp(true)} />
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Banners />
        <Page rest={route.rest} />
      </main>
      {help && <Shortcuts onClose={() => setHelp(false)} />}
    </div>
  );
}

function Ring() {
  return (
    <svg class="ring" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <path d="M20.5 4.6A12.2 12.2 0 1 0 27.4 11.5" fill="none" stroke="currentColor" stroke-width="2.6" />
      <path d="M10 10h5.4v5.4H10z" fill="var(--owner-1)" />
      <path d="M16.6 10H22v5.4h-5.4z" fill="var(--owner-2)" />
      <path d="M10 16.6h5.4V22H10z" fill="var(--owner-3)" />
      <path d="M16.6 16.6H22V22h-5.4z" fill="var(--owner-0)" />
    </svg>
  );
}
