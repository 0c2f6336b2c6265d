// What resizing elastic groups would do with a load: CPUs of each group over time, beside other rules.
import { useMemo, useState } from 'preact/hooks';
import { api, type Schema } from '../client';
import { mark } from '../model/marks';
import { digits, plural } from '../model/format';
import { Chart, type Line } from '../parts/chart';
import { Diagnostics, Editor } from '../parts/editor';
import { useAct } from '../parts/use-ask';
import { useLayout } from '../parts/use-layout';
import { Command, Empty, Note, Refused } from '../parts/words';

type Load = NonNullable<Schema['Simulate']['synthetic']>[number];
type Rule = NonNullable<Schema['Simulate']['against']>[number];

const LOADS: [Load, string][] = [
  ['constant', 'constant'],
  ['ramp', 'slowly up and down'],
  ['square', 'low and high in turns'],
  ['pareto', 'bursts'],
  ['diurnal', 'a day in ten minutes'],
];
const RULES: [Rule, string][] = [
  ['static', 'without any change'],
  ['koordinator', 'koordinator'],
  ['scx_layered', 'scx_layered'],
  ['lpmd', 'intel-lpmd'],
  ['clairvoyant', 'who knows the load'],
];

export function SimulatePage() {
  const layout = useLayout();
  const [loads, setLoads] = useState<Load[]>(['square', 'diurnal']);
  const [rules, setRules] = useState<Rule[]>(['static']);
  const [trace, setTrace] = useState(false);
  const [seed, setSeed] = useState(1);
  const [result, setResult] = useState<Schema['Simulated'] | null>(null);
  const { busy, refusal, act } = useAct();
  const run = () => act(async () => setResult(await api.simulate({ text: layout.text, synthetic: loads, against: rules, seed, trace })));
  return (
    <>
      <div class="page-head">
        <h1>Simulate</h1>
        <span class="quantity">Elastic groups of the layout (cpus with min and max), with loads by formula. Nothing is written.</span>
      </div>
      <div class="plan-body">
        <form onSubmit={e => (e.preventDefault(), void run())}>
          <details open={layout.edited}>
            <summary>
              Layout: {layout.edited ? 'as edited' : (layout.file?.path ?? '')} (the same as on the page Plan)
            </summary>
            <Editor value={layout.text} onInput={layout.set} onSubmit={run} diagnostics={layout.checked?.diagnostics ?? []} label="Layout to simulate" describedBy="simulated-diagnostics" />
          </details>
          {layout.refused && <Refused refusal={layout.refused} />}
          {layout.problem ? <Refused refusal={layout.problem} /> : <Diagnostics id="simulated-diagnostics" list={layout.checked?.diagnostics ?? []} text="" />}
          <Choices legend="Loads" of={LOADS} chosen={loads} set={setLoads} />
          <label class="choice">
            <input type="checkbox" checked={trace} onChange={e => setTrace(e.currentTarget.checked)} /> what the recorder's log has
          </label>
          <Choices legend="Beside ringfence, the rules of" of={RULES} chosen={rules} set={setRules} />
          <p class="actions">
            <label>
              Seed <input type="number" min={0} step={1} value={seed} onInput={e => setSeed(Math.max(0, Math.floor(Number(e.currentTarget.value) || 0)))} />
            </label>
            <button type="submit" class="main" disabled={busy || (loads.length === 0 && !trace) || layout.problem !== null || (layout.checked?.errors ?? 0) > 0}>
              {busy ? 'Simulating …' : 'Simulate'}
            </button>
          </p>
        </form>
        <div>
          {refusal && <Refused refusal={refusal} />}
          {result ? <Result result={result} /> : !refusal && <Empty>{busy ? 'Simulating …' : 'The CPUs of each group over time, and what each rule loses, come here.'}</Empty>}
        </div>
      </div>
    </>
  );
}

function Choices<T extends string>({ legend, of, chosen, set }: { legend: string; of: [T, string][]; chosen: T[]; set: (chosen: T[]) => void }) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      {of.map(([name, text]) => (
        <label class="choice" key={name}>
          <input type="checkbox" checked={chosen.includes(name)} onChange={e => set(of.map(([n]) => n).filter(n => (n === name ? e.currentTarget.checked : chosen.includes(n))))} /> {text}
        </label>
      ))}
    </fieldset>
  );
}

function Result({ result }: { result: Schema['Simulated'] }) {
  const [chosen, setChosen] = useState(0);
  const outcome = result.outcomes[Math.min(chosen, result.outcomes.length - 1)];
  return (
    <section aria-label="What came out">
      {result.warnings.map(w => (
        <Note kind="warning" key={w}>
          {w}
        </Note>
      ))}
      {result.groups.length === 0 && <Empty>The layout has no elastic group. One is written as: cpus = {'{ min = 2, max = 8 }'}</Empty>}
      {result.outcomes.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Loads and rules">
          <table>
            <thead>
              <tr>
                <th scope="col">Load</th>
                <th scope="col">Rule</th>
                {['Lost %', 'Stranded %', 'Unused %', 'Changes', 'Walk'].map(h => (
                  <th scope="col" class="num" key={h}>
                    {h}
                  </th>
                ))}
                <th scope="col">
                  <span class="unseen">Chart</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {result.outcomes.map((o, i) => (
                <tr key={i} class={i === chosen ? 'chosen-row' : undefined}>
                  <td>{o.load}</td>
                  <td>{o.rule}</td>
                  <td class="num">{digits(o.lost_percent)}</td>
                  <td class="num">{digits(o.stranded_percent)}</td>
                  <td class="num">{digits(o.unused_percent)}</td>
                  <td class="num">{o.changes}</td>
                  <td class="num">{o.walk}</td>
                  <td class="num">
                    <button type="button" class="quiet" aria-pressed={i === chosen} aria-label={`Chart of ${o.load} by ${o.rule}`} onClick={() => setChosen(i)}>
                      Chart
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {outcome && <OverTime outcome={outcome} groups={result.groups} />}
      <p class="numbers">
        Lost: work that was not served within a second. Stranded: CPU time unused while work waited. The same on the command line: <Command text={result.command} />
      </p>
    </section>
  );
}

function OverTime({ outcome, groups }: { outcome: Schema['SimulatedLoad']; groups: readonly string[] }) {
  const { times, lines } = useMemo(() => {
    const points = outcome.points;
    const last = points.at(-1);
    const ends = last && last.at < outcome.seconds ? [...points, { at: outcome.seconds, cpus: last.cpus }] : points;
    return {
      times: ends.map(p => p.at),
      lines: groups.map((name, g): Line => ({ name, colour: `--line-${mark(name).colour}`, step: true, values: ends.map(p => p.cpus[g] ?? null) })),
    };
  }, [outcome, groups]);
  return <Chart title={`CPUs of ${plural(groups.length, 'group')}: ${outcome.load}, ${outcome.rule}`} times={times} lines={lines} format={v => digits(v)} height={240} relative />;
}
