export function SimulatePage(_: { rest: string }) {
  return <h1>Simulate</h1>;
}
