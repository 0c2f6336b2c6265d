// A layout from text to machine: diagnostics, steps with reasons, the map before and after, apply with the confirm countdown, undo.
import { useState } from 'preact/hooks';
import { api, type Schema } from '../client';
import { hostNow, live, lookAtHistory } from '../live';
import { moment, plural } from '../model/format';
import { useStore } from '../model/store';
import { Diagnostics, Editor } from '../parts/editor';
import { useAct } from '../parts/use-ask';
import { useLayout, type Edited } from '../parts/use-layout';
import { Command, Note, Refused } from '../parts/words';
import { Generations } from './generations';
import { Planned } from './planned';

export function PlanPage() {
  const layout = useLayout();
  const [planned, setPlanned] = useState<{ answer: Schema['Planned']; text: string } | null>(null);
  const [outcome, setOutcome] = useState<Schema['Outcome'] | null>(null);
  const planning = useAct();
  const stale = planned !== null && planned.text !== layout.text;
  const makePlan = () =>
    planning.act(async () => {
      setOutcome(null);
      setPlanned({ answer: await api.plan(layout.text), text: layout.text });
    });
  const diagnostics = planned && !stale ? planned.answer.diagnostics : (layout.checked?.diagnostics ?? []);
  return (
    <>
      <div class="page-head">
        <h1>Plan</h1>
        <LayoutSource layout={layout} />
      </div>
      <div class="plan-body">
        <section class="plan-edit" aria-label="Layout">
          <Editor value={layout.text} onInput={layout.set} onSubmit={makePlan} diagnostics={diagnostics} label="Layout, as TOML or libcgroup's configuration" describedBy="diagnostics" />
          {layout.refused && <Refused refusal={layout.refused} />}
          {layout.problem ? <Refused refusal={layout.problem} /> : <Diagnostics id="diagnostics" list={diagnostics} text={layout.checked ? layout.text : ''} />}
          <p class="actions">
            <button type="button" class="main" disabled={planning.busy || layout.problem !== null || (layout.checked?.errors ?? 0) > 0} onClick={makePlan} aria-keyshortcuts="Control+Enter">
              {planning.busy ? 'Planning …' : 'Show plan'}
            </button>
            <span class="numbers">Nothing is written by this.</span>
          </p>
          {planning.refusal && <Refused refusal={planning.refusal} />}
        </section>
        <div>
          {outcome && <Done outcome={outcome} />}
          {planned && !outcome && (
            <Planned
              answer={planned.answer}
              stale={stale}
              text={planned.text}
              onAgain={makePlan}
              onApplied={result => {
                setOutcome(result);
                setPlanned(null);
              }}
            />
          )}
          {!planned && !outcome && <p class="empty">The plan has each step with its reason, and who owns which CPU before and after.</p>}
          <Generations />
        </div>
      </div>
    </>
  );
}

function LayoutSource({ layout }: { layout: Edited }) {
  const { file } = layout;
  return (
    <>
      <span class="quantity">
        {file?.path ?? ''}
        {file && !file.exists && ': there is none yet'}
        {layout.edited && ' · edited here, not saved to the file'}
      </span>
      {file?.problem && <Note kind="warning">{file.problem}</Note>}
      {layout.fileProblem && layout.fileProblem.kind !== 'gone' && <Refused refusal={layout.fileProblem} />}
      {layout.edited && (
        <button type="button" onClick={layout.revert}>
          Back to the file
        </button>
      )}
    </>
  );
}

function Done({ outcome }: { outcome: Schema['Outcome'] }) {
  const waits = useStore(live, l => l.history?.pending?.generation === outcome.generation);
  const state = useStore(live, l => l.history?.generations.find(g => g.generation === outcome.generation) ?? null);
  return (
    <Note kind="good" live>
      {outcome.generation == null ? 'Nothing to do: it is so already.' : `Generation ${outcome.generation}: ${plural(outcome.steps, 'step')} done.`}{' '}
      {outcome.undone_at_ms != null && waits && <>It is undone at {moment(outcome.undone_at_ms / 1000, hostNow() / 1000)} unless you confirm it, above.</>}
      {state && !state.in_effect && <b>It is no longer in effect.</b>}
      {outcome.warnings.map(w => (
        <div key={w}>{w}</div>
      ))}
      <div>
        The same on the command line: <Command text={outcome.command} />
      </div>
    </Note>
  );
}

/** After a change: the history at once rather than at the next turn. */
export const refresh = () => lookAtHistory().catch(() => {});
