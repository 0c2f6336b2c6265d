export function HistoryPage(_: { rest: string }) {
  return <h1>History</h1>;
}
