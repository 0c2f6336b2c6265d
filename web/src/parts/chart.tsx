// A chart over time by uPlot, with the same figures as a table beside it for who reads or hears rather than sees it.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

export interface Line {
  name: string;
  /** a CSS variable: --owner-1 */
  colour: string;
  dash?: number[];
  values: (number | null)[];
  step?: boolean;
}

export interface ChartProps {
  title: string;
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  height?: number;
  /** a time to mark, in seconds since 1970 */
  mark?: number | null;
  onPick?: (seconds: number) => void;
  relative?: boolean;
  /** bytes: ticks at powers of two */
  binary?: boolean;
  floor?: number;
}

export function css(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

const POWERS = Array.from({ length: 60 }, (_, i) => 2 ** i);
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

export function Chart(props: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shape = props.lines.map(l => `${l.name}|${l.colour}`).join('\n');

  useEffect(() => {
    const place = host.current!;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(latest.current, place.clientWidth, () => latest.current), data(latest.current), place);
    };
    make();
    const sizes = new ResizeObserver(() => {
      const width = place.clientWidth;
      if (plot.current && width && plot.current.width !== width) plot.current.setSize({ width, height: plot.current.height });
    });
    sizes.observe(place);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', make);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener('change', make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, props.height]);

  useEffect(() => plot.current?.setData(data(props)), [props.times, props.lines, props.mark]);

  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <Keys lines={props.lines} format={props.format} />
      </figcaption>
      <div ref={host} class="chart-canvas" style={{ minHeight: `${props.height ?? 130}px` }} aria-hidden="true" />
      <Figures {...props} />
    </figure>
  );
}

function Keys({ lines, format }: Pick<ChartProps, 'lines' | 'format'>) {
  return (
    <ul class="keys">
      {lines.map((l, i) => {
        const last = l.values.findLast(v => v != null);
        return (
          <li key={l.name}>
            <Swatch colour={l.colour} dash={l.dash ?? DASHES[i % DASHES.length]} />
            {l.name} <b>{last == null ? '–' : format(last)}</b>
          </li>
        );
      })}
    </ul>
  );
}

function Swatch({ colour, dash }: { colour: string; dash?: number[] }) {
  return (
    <svg width="22" height="8" aria-hidden="true">
      <line x1="0" y1="4" x2="22" y2="4" stroke={`var(${colour})`} stroke-width="2" stroke-dasharray={dash?.join(' ')} />
    </svg>
  );
}

const ROWS = 40;

function Figures({ title, times, lines, format, relative }: ChartProps) {
  const step = Math.max(1, Math.ceil(times.length / ROWS));
  const rows = times.map((t, i) => ({ t, i })).filter(({ i }) => i % step === 0);
  return (
    <details class="figures">
      <summary>
        Figures <span class="unseen">of {title} as a table</span>
      </summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${title}, table`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {lines.map(l => (
                <th scope="col" key={l.name}>
                  {l.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ t, i }) => (
              <tr key={t}>
                <th scope="row">{relative ? `${t} s` : new Date(t * 1000).toLocaleTimeString()}</th>
                {lines.map(l => (
                  <td key={l.name}>{l.values[i] == null ? '–' : format(l.values[i]!)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function data({ times, lines }: ChartProps): uPlot.AlignedData {
  return [times, ...lines.map(l => l.values)] as uPlot.AlignedData;
}

/** A time of the axis: the day where ticks are days apart, else the time of day on 24 hours. */
function clock(seconds: number, step: number): string {
  const at = new Date(seconds * 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  if (step >= 86400) return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${two(at.getHours())}:${two(at.getMinutes())}${step < 60 ? `:${two(at.getSeconds())}` : ''}`;
}

function options(props: ChartProps, width: number, now: () => ChartProps): uPlot.Options {
  const ink = css('--ink-2');
  const grid = { stroke: css('--rule'), width: 1 };
  const font = '11px system-ui, sans-serif';
  return {
    width: Math.max(120, width),
    height: props.height ?? 130,
    legend: { show: false },
    cursor: { y: false, points: { show: false } },
    scales: {
      x: { time: !props.relative },
      y: { range: (_, __, max) => [props.floor ?? 0, Math.max(max || 0, 1e-9) * 1.05] },
    },
    axes: [
      { stroke: ink, grid, ticks: grid, font, size: 26, values: (_, splits, __, ___, step) => splits.map(t => (now().relative ? `${t} s` : clock(t, step))) },
      {
        stroke: ink,
        grid,
        ticks: { show: false },
        font,
        size: 56,
        space: 26,
        ...(props.binary ? { incrs: POWERS } : {}),
        values: (_, splits) => splits.map(v => now().format(v)),
      },
    ],
    series: [
      {},
      ...props.lines.map((l, i) => ({
        label: l.name,
        stroke: css(l.colour),
        width: 1.6,
        dash: l.dash ?? DASHES[i % DASHES.length],
        points: { show: false },
        ...(l.step ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
      })),
    ],
    hooks: {
      draw: [
        u => {
          const mark = now().mark;
          if (mark == null) return;
          const x = Math.round(u.valToPos(mark, 'x', true));
          if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
          u.ctx.save();
          u.ctx.fillStyle = css('--ink');
          u.ctx.fillRect(x, u.bbox.top, Math.max(1, devicePixelRatio), u.bbox.height);
          u.ctx.restore();
        },
      ],
      ready: [
        u => {
          u.over.addEventListener('click', () => {
            const left = u.cursor.left;
            if (left != null && left >= 0) now().onPick?.(u.posToVal(left, 'x'));
          });
        },
      ],
    },
  };
}
