// The settings of a group, changed in place: value, plan, write. Nothing is written that was not shown before.
import { useRef, useState } from 'preact/hooks';
import { api, type Refusal, type Schema } from '../client';
import { live, lookAtHistory } from '../live';
import { useStore } from '../model/store';
import { useAct } from '../parts/use-ask';
import { Command, Note, Refused } from '../parts/words';

export function Settings({ group, changed }: { group: Schema['Group']; changed: () => void }) {
  const write = useStore(live, l => l.session?.write ?? false);
  const [editing, setEditing] = useState<string | null>(null);
  const [done, setDone] = useState<{ changed: Schema['Changed']; before: Schema['ChangePlan']['before'] } | null>(null);
  return (
    <section>
      <h2>Settings</h2>
      {!write && <p class="numbers">Read-only: start <code>ringfence web --write</code> to change values. Plans are shown all the same.</p>}
      {done && (
        <Note kind="good" live>
          Written by {done.changed.by}: {Object.entries(done.changed.values).map(([k, v]) => `${k} is ${v}`).join(', ')}
          {done.changed.generation != null ? (
            <>, generation {done.changed.generation}: take it back on the page Plan, or with <Command text="ringfence undo" /></>
          ) : (
            <>. The history does not have it; before, {Object.entries(done.before).map(([k, v]) => `${k} was ${v || 'empty'}`).join(', ')}</>
          )}
          {done.changed.notes.map(n => (
            <div key={n}>{n}</div>
          ))}
        </Note>
      )}
      <table class="settings">
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">Value</th>
            <th scope="col">
              <span class="unseen">Change</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {group.settings.map(s =>
            editing === s.name ? (
              <Edit
                key={s.name}
                group={group.group}
                setting={s}
                write={write}
                onEnd={(result, before) => {
                  setEditing(null);
                  if (!result) return;
                  setDone({ changed: result, before: before ?? {} });
                  changed();
                }}
              />
            ) : (
              <tr key={s.name}>
                <th scope="row" title={s.file}>
                  <code>{s.name}</code>
                  <small>{s.help}</small>
                </th>
                <td class="set">{s.value === '' ? 'empty' : s.value}</td>
                <td class="num">
                  {s.can_set && (
                    <button type="button" class="quiet" aria-label={`Change ${s.name}`} onClick={() => (setEditing(s.name), setDone(null))}>
                      Change
                    </button>
                  )}
                </td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </section>
  );
}

interface EditProps {
  group: string;
  setting: Schema['SettingInfo'];
  write: boolean;
  onEnd: (changed: Schema['Changed'] | null, before?: Schema['ChangePlan']['before']) => void;
}

function Edit({ group, setting, write, onEnd }: EditProps) {
  // the value at the start: what somebody else writes meanwhile is a conflict rather than overwritten
  const shown = useRef(setting.value);
  const [value, setValue] = useState(setting.value);
  const [plan, setPlan] = useState<Schema['ChangePlan'] | null>(null);
  const { busy, refusal, act, clear } = useAct();
  const set = { [setting.name]: value };
  const makePlan = () => act(async () => setPlan(await api.planSettings(group, { set })));
  const carryOut = () =>
    act(async () => {
      const changed = await api.changeSettings(group, { set, expected: plan!.before, expected_generation: plan!.generation });
      void lookAtHistory().catch(() => {});
      onEnd(changed, plan!.before);
    });
  const other = plan && plan.before[setting.name] !== undefined && plan.before[setting.name] !== shown.current;
  return (
    <tr class="editing">
      <td colSpan={3}>
        <form
          onSubmit={e => {
            e.preventDefault();
            if (plan && write) void carryOut();
            else void makePlan();
          }}
          onKeyDown={e => e.key === 'Escape' && onEnd(null)}
        >
          <label>
            <code>{setting.name}</code>{' '}
            {setting.choices.length > 0 ? (
              <select value={value} onChange={e => (setValue(e.currentTarget.value), setPlan(null), clear())}>
                {[...new Set([setting.value, ...setting.choices])].map(c => (
                  <option key={c}>{c}</option>
                ))}
              </select>
            ) : (
              <input
                type="text"
                value={value}
                spellcheck={false}
                autocomplete="off"
                ref={e => void (e && document.activeElement === document.body && e.focus())}
                onInput={e => (setValue(e.currentTarget.value), setPlan(null), clear())}
              />
            )}
          </label>
          <span class="actions inline">
            {!plan && (
              <button type="submit" class="main" disabled={busy || value === setting.value}>
                Show plan
              </button>
            )}
            <button type="button" onClick={() => onEnd(null)}>
              Cancel
            </button>
          </span>
          <p class="numbers">
            {setting.range && <>{setting.range}. </>}such as <code>{setting.example}</code>
          </p>
          {refusal && <Conflict refusal={refusal} onAgain={makePlan} />}
          {plan && (
            <div class="change-plan">
              {other && (
                <Note kind="warning">
                  It is {plan.before[setting.name]} now: somebody changed it while you edited ({shown.current} before).
                </Note>
              )}
              <h3>What is written</h3>
              <Writes writes={plan.writes} />
              {plan.notes.map(n => (
                <Note kind="warning" key={n}>
                  {n}
                </Note>
              ))}
              <p class="numbers">
                The same on the command line: <Command text={plan.command} />
              </p>
              {write ? (
                <p class="actions">
                  <button type="submit" class="main" disabled={busy || plan.writes.length === 0}>
                    Write {plan.before[setting.name] ?? ''} → {value}
                  </button>
                </p>
              ) : (
                <p class="numbers">Read-only: nothing is written from here.</p>
              )}
            </div>
          )}
        </form>
      </td>
    </tr>
  );
}

function Conflict({ refusal, onAgain }: { refusal: Refusal; onAgain: () => void }) {
  return (
    <>
      <Refused refusal={refusal} />
      {refusal.kind === 'conflict' && (
        <p class="actions">
          <button type="button" onClick={onAgain}>
            Plan again with the value now
          </button>
        </p>
      )}
    </>
  );
}

export function Writes({ writes }: { writes: readonly Schema['Write'][] }) {
  if (!writes.length) return <p class="numbers">Nothing: it is so already.</p>;
  return (
    <ol class="writes">
      {writes.map(w => (
        <li key={w.file}>
          <code>
            {w.file} ← {w.text}
          </code>
          {w.why && <small>{w.why}</small>}
        </li>
      ))}
    </ol>
  );
}
