import LarderTesting

extension ConformanceSuite {
  /// The cases that can differ between a combination and its parts: those about updates, concurrency, closing,
  /// reopening, damage, errors and observation, and those with values that cannot be encoded.
  ///
  /// Every case runs for each kind of store, and for each decorator over a store in memory. Their combinations, and
  /// variants of a store, run only these cases. With at least 20 rounds, as in `make soak`, they run every case too.
  var casesOfCombinations: [ConformanceCase] {
    guard ConformanceSuite.roundsOfProcess < 20 else { return cases }
    let groups: Set<ConformanceGroup> = [
      .updates, .lifecycle, .reopening, .damage, .errors, .cancellation, .concurrency, .histories, .observation,
    ]
    return cases.filter { groups.contains($0.group) || $0.needs.contains(.encoding) }
  }
}
