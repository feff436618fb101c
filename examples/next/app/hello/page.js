export default function Hello() {
  return <p>Hello from the host.</p>
}
