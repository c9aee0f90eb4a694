import Foundation
import LarderTesting
import Testing

/// What JSON and property lists give back, CBOR gives back.
@Suite struct DifferentialTests {
  /// How many random compositions are compared; `LARDER_ROUNDS` times as many in `make soak`.
  private static let roundCount =
    300 * (ProcessInfo.processInfo.environment["LARDER_ROUNDS"].flatMap { Int($0) } ?? 1)

  /// What a type that tries an array and a map first finds in their place: the bytes of `Data` are an array (the guide says
  /// so), a relative URL is a map of its two parts, and this value is a map anyway.
  private static let arraysAndMaps: Set = [
    "tried value(Data)", "tried value(empty Data)", "tried value(relative URL)", "tried value(AnyValue)",
  ]

  @Test func everyValueInEveryWrapper() {
    let samples = SampleValues.samples().filter { !DifferentialTests.arraysAndMaps.contains($0.name) }
    let faults = samples.compactMap { $0.fault() }
    #expect(faults.isEmpty, "\(faults.count) faults: \(faults.joined(separator: "\n"))")
  }

  @Test func randomCompositions() {
    let seed = SeededGenerator.seedOfProcess
    var random = SeededGenerator(seed: seed, purpose: "random compositions")
    var values: [(String, any SampleValue)] = []
    SampleValues.each { values.append(($0, $1)) }
    for _ in 0..<DifferentialTests.roundCount {
      let (name, value) = values[Int.random(in: values.indices, using: &random)]
      func sample(_ value: some SampleValue) -> CodingSample {
        .random(name, value, depth: Int.random(in: 2...5, using: &random), &random)
      }
      let fault = sample(value).fault()
      #expect(fault == nil, "LARDER_SEED=\(seed)")
    }
  }
}
