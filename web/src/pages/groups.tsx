export function GroupsPage(_: { rest: string }) {
  return <h1>Groups</h1>;
}
