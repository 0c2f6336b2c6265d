// The tasks of a group, the busiest first, with the CPUs on which each ran last.
import { useState } from 'preact/hooks';
import type { Schema } from '../client';
import { percent, plural } from '../model/format';

const FEW = 20;
const STATES: Record<string, string> = { R: 'runs', S: 'sleeps', D: 'waits for a device', T: 'stopped', t: 'traced', Z: 'zombie', I: 'idle', X: 'dead' };

export function Tasks({ group }: { group: Schema['Group'] }) {
  const [all, setAll] = useState(false);
  const sorted = [...group.tasks].sort((a, b) => (b.running ?? 0) - (a.running ?? 0) || a.tid - b.tid);
  const shown = all ? sorted : sorted.slice(0, FEW);
  const below = group.tasks.some(t => t.group !== group.group);
  return (
    <section>
      <h2>{plural(group.tasks_total, 'task')}</h2>
      {group.tasks.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Tasks">
          <table class="tasks">
            <thead>
              <tr>
                <th scope="col">Task</th>
                {below && <th scope="col">Group</th>}
                <th scope="col">State</th>
                <th scope="col" class="num">
                  Ran on CPU
                </th>
                <th scope="col" class="num">
                  Running
                </th>
                <th scope="col" class="num">
                  Waiting
                </th>
                <th scope="col">Policy</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(t => (
                <tr key={t.tid}>
                  <th scope="row">
                    {t.comm} <span class="of">{t.tid === t.pid ? t.pid : `${t.pid}/${t.tid}`}</span>
                  </th>
                  {below && <td>{t.group}</td>}
                  <td title={STATES[t.state]}>{t.state}</td>
                  <td class="num">
                    {t.cpus_before.length > 0 && <span class="of">{t.cpus_before.slice(-3).join(' → ')} → </span>}
                    {t.cpu}
                  </td>
                  <td class="num">{percent(t.running)}</td>
                  <td class="num">{percent(t.waiting)}</td>
                  <td>{t.policy}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {sorted.length > FEW && (
        <button type="button" class="quiet" onClick={() => setAll(!all)}>
          {all ? `Only the ${FEW} busiest` : `All ${sorted.length}`}
        </button>
      )}
      {group.tasks_total > group.tasks.length && (
        <p class="numbers">
          {group.tasks.length} of {group.tasks_total} are listed.
        </p>
      )}
    </section>
  );
}
