// What slowed the group down, in the words of `ringfence why`, with the command that changes it.
import { useState } from 'preact/hooks';
import { api, type Schema } from '../client';
import { percent } from '../model/format';
import { href } from '../model/router';
import { useAsk } from '../parts/use-ask';
import { Advice, Command, Empty, Refused } from '../parts/words';

export function Why({ name }: { name: string }) {
  const [seconds, setSeconds] = useState(2);
  const [round, setRound] = useState(0);
  const asked = useAsk(signal => api.why(name, seconds, signal), `${name} ${round}`);
  const { value, refusal, busy } = asked;
  return (
    <section aria-busy={busy}>
      <div class="section-head">
        <h2>Why it waits</h2>
        <label>
          over{' '}
          <select value={seconds} onChange={e => setSeconds(Number(e.currentTarget.value))}>
            {[2, 5, 10, 30].map(s => (
              <option key={s} value={s}>
                {s} s
              </option>
            ))}
          </select>
        </label>
        <button type="button" disabled={busy} onClick={() => setRound(r => r + 1)}>
          {busy ? `Looking for ${seconds} s …` : 'Look again'}
        </button>
      </div>
      {refusal && <Refused refusal={refusal} />}
      {!value && busy && <Empty>The tasks are watched for {seconds} s …</Empty>}
      {value && <Answer why={value} />}
    </section>
  );
}

function Answer({ why }: { why: Schema['Why'] }) {
  return (
    <>
      {why.causes.length === 0 ? (
        <Empty>
          Nothing slowed it down in {why.seconds.toFixed(0)} s{why.tasks === 0 ? ': it has no tasks' : ''}.
        </Empty>
      ) : (
        <ol class="causes">
          {why.causes.map(c => (
            <li key={c.kind + c.at}>
              <p class="cause">
                <b>{c.share == null ? '' : `${percent(c.share)} `}</b>
                <span class="kind">{c.kind.replaceAll('_', ' ')}</span> {c.sentence}
                {c.at !== why.group && (
                  <>
                    {' '}
                    (<a href={href('groups', c.at)}>{c.at}</a>)
                  </>
                )}
              </p>
              {c.numbers.length > 0 && (
                <p class="numbers">
                  {c.numbers.map(n => (
                    <span key={n.name}>
                      {n.name} <b>{n.text}</b>
                    </span>
                  ))}
                </p>
              )}
              {c.hint && <Advice text={c.hint} />}
              {c.choices.length > 0 && <p class="numbers">One of these:</p>}
              {c.choices.map(choice => (
                <div key={choice}>
                  <Command text={choice} />
                </div>
              ))}
            </li>
          ))}
        </ol>
      )}
      {why.notes.map(n => (
        <p key={n.sentence} class="numbers">
          {n.sentence} {n.hint && <Advice text={n.hint} />}
        </p>
      ))}
      {why.used.length > 0 && (
        <p class="numbers">
          Used meanwhile:{' '}
          {why.used.map(n => (
            <span key={n.name}>
              {n.name} <b>{n.text}</b>
            </span>
          ))}
        </p>
      )}
      <p class="numbers">
        The same on the command line: <Command text={why.command} />
      </p>
    </>
  );
}
