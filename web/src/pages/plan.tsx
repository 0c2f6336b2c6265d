export function PlanPage(_: { rest: string }) {
  return <h1>Plan</h1>;
}
