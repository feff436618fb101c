export default {
  // It has native and lazily loaded parts: Node loads it, the bundler leaves it alone.
  serverExternalPackages: ['platformctl'],
}
