export function LabPage(_: { rest: string }) {
  return <h1>Lab</h1>;
}
