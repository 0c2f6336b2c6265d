// The foot of the frame: is the page live, who looks, and may they change anything?
import { useEffect, useState } from 'preact/hooks';
import { endSession, hostNow, live, seek } from '../live';
import { duration, moment } from '../model/format';
import { useStore } from '../model/store';

/** performance.now() once a second, for what counts seconds: it goes on where somebody sets the browser's clock. */
export function useSecond(active = true): number {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setNow(performance.now()), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

export function Status({ onHelp }: { onHelp: () => void }) {
  const session = useStore(live, l => l.session);
  return (
    <div class="status">
      <Pulse />
      {session && (
        <>
          <span>
            {session.user}
            {session.write ? '' : ' · read-only'}
          </span>
          <span class="wide-only">{DAEMON[session.daemon]}</span>
        </>
      )}
      <button type="button" class="quiet" onClick={onHelp} aria-keyshortcuts="?">
        Keys <kbd>?</kbd>
      </button>
      {session && (
        <button type="button" class="quiet" onClick={() => void endSession()}>
          End session
        </button>
      )}
    </div>
  );
}

const DAEMON = {
  running: 'ringfenced runs',
  not_running: 'no ringfenced: read directly',
  unreachable: 'ringfenced does not answer',
} as const;

/** Milliseconds without newer figures that somebody should know of; they come once a second. */
const LATE = 5000;

function Pulse() {
  const link = useStore(live, l => l.link);
  const at = useStore(live, l => l.at);
  const sampled = useStore(live, l => (l.sample?.at_ms == null ? null : Math.floor(l.sample.at_ms / 1000)));
  const cameAt = useStore(live, l => l.cameAt);
  const now = useSecond(link === 'gone' || link === 'up');
  if (at != null) {
    return (
      <span class="pulse then">
        <Dot kind="then" /> {moment(at / 1000, hostNow() / 1000)}
        <button type="button" class="quiet" onClick={() => void seek(null)}>
          Live
        </button>
      </span>
    );
  }
  if (link === 'over') return <Word kind="off" text="session over" />;
  if (link === 'starting') return <Word kind="off" text="connecting" />;
  if (link === 'gone') {
    const old = cameAt ? `, figures ${duration(Math.round((now - cameAt) / 1000))} old` : '';
    return <Word kind="off" text={`no connection${old}`} />;
  }
  if (cameAt && now - cameAt > LATE) return <Word kind="off" text={`no figures for ${duration(Math.round((now - cameAt) / 1000))}`} />;
  return <Word kind="on" text={sampled == null ? 'live' : moment(sampled, hostNow() / 1000)} title="The time of the newest figures" />;
}

function Word({ kind, text, title }: { kind: 'on' | 'off'; text: string; title?: string }) {
  return (
    <span class="pulse" title={title}>
      <Dot kind={kind} /> {text}
    </span>
  );
}

/** A filled dot for live, an empty one for not, a square for the past: shapes, not colours alone. */
function Dot({ kind }: { kind: 'on' | 'off' | 'then' }) {
  return (
    <svg width="10" height="10" viewBox="0 0 10 10" class={`dot ${kind}`} aria-hidden="true">
      {kind === 'then' ? <path d="M1.500 1.500h7v7h-7z" /> : <circle cx="5" cy="5" r="3.500" />}
    </svg>
  );
}
