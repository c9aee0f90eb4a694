#if Compression && Crypto && LMDB && Metrics && SQLite
import LarderTesting
import TestSupport

extension ConformanceSuite {
  /// The cases that can differ between a combination and its parts: those about updates, concurrency, closing,
  /// reopening, damage, errors and observation, and those with values that cannot be encoded.
  ///
  /// Every case runs for each kind of store, and for each decorator over a store in memory. Their combinations, and
  /// variants of a store, run only a third of these cases, which the seed and the name of the suite choose, so each
  /// case runs in many combinations, and a case of one combination within a few runs. With at least 20 rounds, as in
  /// `make soak`, every case runs.
  var casesOfCombinations: [ConformanceCase] {
    guard TestDepth.isShort else { return cases }
    let groups: Set<ConformanceGroup> = [
      .updates, .lifecycle, .reopening, .damage, .errors, .cancellation, .concurrency, .histories, .observation,
    ]
    let relevant = cases.filter { groups.contains($0.group) || $0.needs.contains(.encoding) }
    return TestDepth.part(of: relevant, oneIn: 3, for: name)
  }
}
#endif
