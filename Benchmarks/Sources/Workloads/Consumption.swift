/// Uses a result, so the compiler cannot remove the work that produced it.
@inline(never)
func consume(_ result: some Any) {
  withExtendedLifetime(result) {}
}
