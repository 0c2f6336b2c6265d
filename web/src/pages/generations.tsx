// The history of generations, the newest first, with the way back to each.
import { useState } from 'preact/hooks';
import { api, type Schema } from '../client';
import { hostNow, live } from '../live';
import { moment, plural } from '../model/format';
import { useStore } from '../model/store';
import { Dialog } from '../parts/dialog';
import { useAct } from '../parts/use-ask';
import { Busy, Command, Empty, Note, Refused } from '../parts/words';
import { refresh } from './plan';

const FEW = 12;

export function Generations() {
  const history = useStore(live, l => l.history);
  const write = useStore(live, l => l.session?.write ?? false);
  const [asking, setAsking] = useState<number | null>(null);
  const [all, setAll] = useState(false);
  const [done, setDone] = useState<Schema['Outcome'] | null>(null);
  if (!history) return <Busy>Reading the history …</Busy>;
  const newest = [...history.generations].reverse();
  const shown = all ? newest : newest.slice(0, FEW);
  return (
    <section aria-label="History of generations">
      <div class="section-head">
        <h2>Generations</h2>
        {write && newest.length > 0 && (
          <button type="button" onClick={() => setAsking(-1)}>
            Undo the last change
          </button>
        )}
      </div>
      {history.problem && <Note kind="warning">{history.problem}</Note>}
      {done && (
        <Note kind="good" live>
          Undone: generation {done.generation}, {plural(done.steps, 'step')}.
          {done.warnings.map(w => (
            <div key={w}>{w}</div>
          ))}
        </Note>
      )}
      {newest.length === 0 ? (
        <Empty>Nothing was applied yet.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Generations">
          <table>
            <thead>
              <tr>
                <th scope="col" class="num">
                  Nr
                </th>
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">What</th>
                <th scope="col">State</th>
                <th scope="col">
                  <span class="unseen">Undo</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map(g => (
                <tr key={g.generation} class={g.in_effect ? undefined : 'past'}>
                  <th scope="row" class="num">
                    {g.generation}
                  </th>
                  <td>{g.at_ms == null ? '–' : moment(g.at_ms / 1000, hostNow() / 1000)}</td>
                  <td>{g.by}</td>
                  <td>
                    {g.what} <span class="of">{plural(g.steps, 'step')}</span>
                    {g.problems.map(p => (
                      <small key={p}>{p}</small>
                    ))}
                  </td>
                  <td>
                    {g.state}
                    {g.in_effect ? ', in effect' : ''}
                  </td>
                  <td class="num">
                    {write && g.generation !== history.newest && (
                      <button type="button" class="quiet" onClick={() => setAsking(g.generation)} aria-label={`Back to this: the state after generation ${g.generation}`}>
                        Back to this
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {newest.length > FEW && (
        <button type="button" class="quiet" onClick={() => setAll(!all)}>
          {all ? 'Only the newest' : `All ${newest.length}`}
        </button>
      )}
      {asking !== null && (
        <Undo
          to={asking < 0 ? null : asking}
          history={history}
          onClose={outcome => {
            setAsking(null);
            if (outcome) setDone(outcome);
          }}
        />
      )}
    </section>
  );
}

function Undo({ to, history: newest, onClose }: { to: number | null; history: Schema['History']; onClose: (outcome: Schema['Outcome'] | null) => void }) {
  const { busy, refusal, act } = useAct();
  // what is undone is what stands here, also where another change comes meanwhile: then it is refused
  const [history] = useState(newest);
  const last = history.generations.at(-1);
  const undone = to === null ? [] : history.generations.filter(g => g.generation > to && g.in_effect);
  const go = () =>
    act(async () => {
      const outcome = await api.undo(to, history.newest).finally(refresh);
      onClose(outcome);
    });
  return (
    <Dialog title={to === null ? 'Undo the last change' : `Back to the state after generation ${to}`} onClose={() => onClose(null)}>
      {to === null ? (
        <p>
          This takes back generation {last?.generation}: {last?.what}.
        </p>
      ) : (
        <>
          <p>This takes back what came after generation {to}:</p>
          <ul>
            {undone.map(g => (
              <li key={g.generation}>
                {g.generation}: {g.what}
              </li>
            ))}
          </ul>
        </>
      )}
      <p>Settings go back to what they were. Programs go on running; a group with tasks in it stays.</p>
      <p class="numbers">
        The same on the command line: <Command text={to === null ? 'ringfence undo' : `ringfence undo ${to}`} />
      </p>
      {refusal && <Refused refusal={refusal} />}
      <p class="actions">
        <button type="button" class="main" disabled={busy} onClick={go}>
          {busy ? 'Undoing …' : 'Undo'}
        </button>
      </p>
    </Dialog>
  );
}
