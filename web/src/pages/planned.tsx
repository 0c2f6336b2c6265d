// A plan: its steps with reasons, the machine before and after, and the way to carry it out.
import { useMemo, useState } from 'preact/hooks';
import { api, type Schema } from '../client';
import { live } from '../live';
import { plural } from '../model/format';
import { useStore } from '../model/store';
import { Chosen, MachineMap } from '../parts/map';
import { useAct } from '../parts/use-ask';
import { Command, CpuList, Note, Refused, Tag } from '../parts/words';
import { refresh } from './plan';

interface PlannedProps {
  answer: Schema['Planned'];
  text: string;
  stale: boolean;
  onAgain: () => void;
  onApplied: (outcome: Schema['Outcome']) => void;
}

export function Planned({ answer, text, stale, onAgain, onApplied }: PlannedProps) {
  const { plan } = answer;
  if (!plan) return <Note kind="error">The layout has errors: there is no plan. They stand below the text.</Note>;
  return (
    <section aria-label="Plan">
      {stale && (
        <Note kind="warning" live>
          The text has changed since this plan.{' '}
          <button type="button" onClick={onAgain}>
            Plan again
          </button>
        </Note>
      )}
      <h2>{plan.steps.length ? plural(plan.steps.length, 'step') : 'Nothing to do: the machine is as the layout says'}</h2>
      <Steps steps={plan.steps} />
      {plan.steps.length > 0 && <Apply plan={plan} text={text} disabled={stale} onApplied={onApplied} />}
      <BeforeAfter plan={plan} />
      <Assignments plan={plan} />
      <p class="numbers">
        The same on the command line: <Command text={answer.command} />
      </p>
    </section>
  );
}

function Steps({ steps }: { steps: readonly Schema['Step'][] }) {
  const [all, setAll] = useState(false);
  const few = 200;
  const shown = all ? steps : steps.slice(0, few);
  const blocks: { group: string; steps: Schema['Step'][] }[] = [];
  for (const step of shown) {
    const last = blocks.at(-1);
    if (last?.group === step.group) last.steps.push(step);
    else blocks.push({ group: step.group, steps: [step] });
  }
  return (
    <>
      {blocks.map(b => (
        <div class="step-block" key={b.steps[0]!.number}>
          <h3>{b.group || '/'}</h3>
          <ol class="steps" start={b.steps[0]!.number}>
            {b.steps.map(s => (
              <li key={s.number}>
                <code>{s.what}</code>
                {s.before != null && s.before !== '' && <span class="of"> (was {s.before})</span>}
                {s.restores && <span class="flag">taken back</span>}
                <small>{s.why}</small>
              </li>
            ))}
          </ol>
        </div>
      ))}
      {steps.length > few && !all && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {steps.length}
        </button>
      )}
    </>
  );
}

function BeforeAfter({ plan }: { plan: Schema['Plan'] }) {
  const machine = useStore(live, l => l.machine);
  const changed = useMemo(() => changedCpus(plan), [plan]);
  const [chosen, setChosen] = useState<number | null>(null);
  if (!machine) return null;
  return (
    <div>
      <h3>Owners of CPUs before and after</h3>
      <p class="numbers">{changed.size === 0 ? 'No CPU changes its owner.' : `${plural(changed.size, 'CPU')} with another owner, dashed.`}</p>
      <div class="before-after">
        <figure>
          <figcaption>Before</figcaption>
          <MachineMap machine={machine} owners={plan.before} sample={null} height={260} outlined={changed} selected={chosen} onSelect={setChosen} label="Map before" />
          <Chosen cpu={chosen} machine={machine} owners={plan.before} sample={null} />
        </figure>
        <figure>
          <figcaption>After</figcaption>
          <MachineMap machine={machine} owners={plan.after} sample={null} height={260} outlined={changed} selected={chosen} onSelect={setChosen} label="Map after" />
          <Chosen cpu={chosen} machine={machine} owners={plan.after} sample={null} />
        </figure>
      </div>
    </div>
  );
}

function changedCpus(plan: Schema['Plan']): Set<number> {
  const names = (o: Schema['Owners'], c: Schema['CpuOwners']) => c.owners.map(i => o.owners[i]!.group).sort().join('\n');
  const before = new Map(plan.before.cpus.map(c => [c.id, `${names(plan.before, c)}|${c.isolated}`]));
  return new Set(plan.after.cpus.filter(c => before.get(c.id) !== `${names(plan.after, c)}|${c.isolated}`).map(c => c.id));
}

function Assignments({ plan }: { plan: Schema['Plan'] }) {
  if (!plan.assignments.length) return null;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="CPUs of each group">
      <table>
        <thead>
          <tr>
            <th scope="col">Group</th>
            <th scope="col">CPUs</th>
            <th scope="col">Nodes</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {plan.assignments.map(a => (
            <tr key={a.group}>
              <th scope="row">
                <Tag group={a.group} /> {a.group}
              </th>
              <td>
                <CpuList text={a.cpus} /> {a.exclusive && <span class="flag">exclusive</span>}
              </td>
              <td class="set">{a.mems ?? '–'}</td>
              <td>{a.why}</td>
            </tr>
          ))}
          {plan.reserved && (
            <tr>
              <th scope="row">reserve of the system</th>
              <td>
                <CpuList text={plan.reserved} />
              </td>
              <td />
              <td />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

interface ApplyProps {
  plan: Schema['Plan'];
  text: string;
  disabled: boolean;
  onApplied: (outcome: Schema['Outcome']) => void;
}

function Apply({ plan, text, disabled, onApplied }: ApplyProps) {
  const write = useStore(live, l => l.session?.write ?? false);
  const pending = useStore(live, l => l.history?.pending ?? null);
  const [confirm, setConfirm] = useState(60);
  const [sure, setSure] = useState(false);
  const { busy, refusal, act } = useAct();
  if (!write) return <p class="numbers">Read-only: start <code>ringfence web --write</code> to apply it from here.</p>;
  const apply = () =>
    act(async () => {
      // who is refused because another change came sees that one
      const outcome = await api.apply({ text, confirm_seconds: confirm || null, expected_generation: plan.generation, empties: plan.empties || undefined }).finally(refresh);
      onApplied(outcome);
    });
  return (
    <div class="apply">
      {plan.empties && (
        <Note kind="warning">
          <label>
            <input type="checkbox" checked={sure} onChange={e => setSure(e.currentTarget.checked)} /> The layout has no groups: this undoes all that earlier layouts applied. That is what I want.
          </label>
        </Note>
      )}
      {pending && <Note kind="warning">Generation {pending.generation} still waits to be confirmed.</Note>}
      <p class="actions">
        <button type="button" class="main" disabled={busy || disabled || (plan.empties && !sure)} onClick={apply}>
          {busy ? 'Applying …' : `Apply ${plural(plan.steps.length, 'step')}`}
        </button>
        <label>
          undone unless confirmed within{' '}
          <select value={confirm} onChange={e => setConfirm(Number(e.currentTarget.value))}>
            {[10, 30, 60, 300, 900].map(s => (
              <option key={s} value={s}>
                {s < 120 ? `${s} s` : `${s / 60} min`}
              </option>
            ))}
            <option value={0}>never: it stays</option>
          </select>
        </label>
      </p>
      {refusal && <Refused refusal={refusal} />}
      {refusal?.problem?.diagnostics?.map(d => (
        <Note key={d.message} kind={d.severity}>
          {d.message}
        </Note>
      ))}
    </div>
  );
}
