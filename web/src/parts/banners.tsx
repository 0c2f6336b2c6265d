// What stands above every page until it is over: a lost connection, an ended session, the past on show, clocks that differ, and a
// change that waits to be confirmed.
import { useState } from 'preact/hooks';
import { api, Refusal, type Schema } from '../client';
import { hostNow, live, lookAtHistory, seek } from '../live';
import { duration, moment } from '../model/format';
import { useStore } from '../model/store';
import { useSecond } from './status';
import { Command, Hint, Note, Refused } from './words';

export function Banners() {
  return (
    <div class="banners">
      <Connection />
      <DaemonState />
      <Past />
      <Clocks />
      <PendingChange />
    </div>
  );
}

function Connection() {
  const link = useStore(live, l => l.link);
  const refusal = useStore(live, l => l.refusal);
  if (link === 'over') {
    return (
      <Note kind="error" live>
        The session is over: {refusal?.message}. Start ringfence web again, or press Return where it runs, and open the address that it prints.
        <Hint text={refusal?.hint} />
      </Note>
    );
  }
  if (link !== 'gone') return null;
  return (
    <Note kind="error" live>
      {refusal?.message}. What you see is the last that came; the page goes on as soon as there is an answer.
      <Hint text={refusal?.hint} />
    </Note>
  );
}

function DaemonState() {
  const problem = useStore(live, l => (l.session?.daemon === 'unreachable' ? (l.session.daemon_problem ?? 'no answer on its socket') : null));
  if (!problem) return null;
  return (
    <Note kind="warning" live>
      ringfenced does not answer: {problem}. The figures are read without it.
    </Note>
  );
}

function Past() {
  const at = useStore(live, l => l.at);
  const problem = useStore(live, l => l.thenProblem);
  const sampled = useStore(live, l => l.then?.at_ms ?? null);
  const torn = useStore(live, l => l.then?.log_problem ?? null);
  if (at == null) return null;
  if (problem) return <Refused what={`The log has nothing to show at ${moment(at / 1000, hostNow() / 1000)}`} refusal={problem} />;
  return (
    <Note>
      All pages show <b>{moment((sampled ?? at) / 1000, hostNow() / 1000)}</b> from the recorder's log, {duration(Math.round((hostNow() - (sampled ?? at)) / 1000))} ago.{' '}
      {torn && <>The log is damaged: {torn}. </>}
      <button type="button" onClick={() => void seek(null)}>
        Show live figures
      </button>
    </Note>
  );
}

function Clocks() {
  const ahead = useStore(live, l => Math.round(l.ahead / 1000));
  if (!ahead) return null;
  return (
    <Note kind="warning">
      The host's clock is {duration(Math.abs(ahead))} {ahead > 0 ? 'ahead of' : 'behind'} this browser's. Times on these pages are by the host's clock, in this browser's time zone.
    </Note>
  );
}

function PendingChange() {
  const pending = useStore(live, l => l.history?.pending ?? null);
  if (!pending) return null;
  return <Countdown pending={pending} key={pending.generation} />;
}

function Countdown({ pending }: { pending: Schema['Pending'] }) {
  const write = useStore(live, l => l.session?.write ?? false);
  const [seen, setSeen] = useState({ pending, at: performance.now() });
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [busy, setBusy] = useState(false);
  if (seen.pending !== pending) setSeen({ pending, at: performance.now() });
  const now = useSecond();
  const left = Math.max(0, Math.ceil((seen.pending.remaining_ms - (now - seen.at)) / 1000));
  const act = async (what: () => Promise<unknown>) => {
    setBusy(true);
    setRefusal(null);
    try {
      await what();
    } catch (error) {
      if (error instanceof Refusal) setRefusal(error);
    }
    await lookAtHistory().catch(() => {});
    setBusy(false);
  };
  return (
    <section class="pending" aria-label="A change waits to be confirmed">
      <p>
        <b>
          Generation {pending.generation}{' '}
          {pending.overdue || left === 0 ? 'is being undone' : <>is undone in <span class="count" aria-hidden="true">{left} s</span><span class="unseen">{duration(left > 10 ? Math.ceil(left / 10) * 10 : left)}</span> unless you confirm it</>}
        </b>
      </p>
      {pending.unwatched && <p>{pending.sentence}</p>}
      {write ? (
        <p class="actions">
          <button type="button" class="main" disabled={busy} onClick={() => void act(() => api.confirm(pending.generation))}>
            Confirm: keep it
          </button>
          <button type="button" disabled={busy} onClick={() => void act(() => api.undo(null, live.value.history?.newest ?? pending.generation))}>
            Undo it now
          </button>
        </p>
      ) : (
        <Command text={`ringfence confirm ${pending.generation}`} />
      )}
      {refusal && <Refused refusal={refusal} />}
    </section>
  );
}
