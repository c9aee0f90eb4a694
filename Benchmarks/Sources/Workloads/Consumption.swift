/// Uses a result, so that the compiler cannot remove the work that produced it.
@inline(never)
func consume(_ result: some Any) {
  withExtendedLifetime(result) {}
}
