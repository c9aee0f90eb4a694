import Foundation
import LarderTesting
import Testing

/// CBOR preserves every value that JSON and property lists preserve.
@Suite struct DifferentialTests {
  /// The number of random compositions.
  ///
  /// `make soak` multiplies it by `LARDER_ROUNDS`.
  private static let roundCount =
    300 * max(1, ConformanceSuite.roundsOfProcess / 20)

  /// Samples that a type decodes as maps if it tries a map first.
  ///
  /// A relative URL is a map of its two parts, and this value is always a map.
  private static let maps: Set = ["tried value(relative URL)", "tried value(AnyValue)"]

  @Test func `every value in every wrapper`() {
    let samples = SampleValues.samples().filter { !DifferentialTests.maps.contains($0.name) }
    let faults = samples.compactMap { $0.fault() }
    #expect(faults.isEmpty, "\(faults.count) faults: \(faults.joined(separator: "\n"))")
  }

  /// Types that try several kinds of values and decode each of them with a container.
  @Test func `types that try one kind after another`() {
    var samples: [CodingSample] = []
    func add(_ name: String, _ value: some SampleValue) { samples += CodingSample.wrapped(name, value) }
    add("Data first", Either<Data, [Int]>.first(Data([1, 2])))
    add("Data first", Either<Data, [Int]>.second([1, 2]))
    add("Data first", Either<Data, [Int]>.second([]))
    add("bytes first", Either<[UInt8], Data>.first([1, 2]))
    add("numbers first", Either<[Int], Data>.second(Data([1, 2])))
    add("numbers first", Either<Set<Int>, Data>.second(Data()))
    add("optional numbers first", Either<[Int?], Data>.second(Data([1])))
    add("texts first", Either<[String: Int], [UUID: Int]>.second([:]))
    add("integers first", Either<[Int: Int], [UUID: Int]>.second([:]))
    add("coding keys first", Either<[CodingKeyed: Int], [UUID: Int]>.second([:]))
    let faults = samples.compactMap { $0.fault() }
    #expect(faults.isEmpty, "\(faults.count) faults: \(faults.joined(separator: "\n"))")
  }

  private enum CodingKeyed: String, SampleValue, CodingKeyRepresentable { case low }

  private enum Either<First: SampleValue, Second: SampleValue>: SampleValue {
    case first(First)
    case second(Second)

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let first = try? container.decode(First.self) {
        self = .first(first)
      } else {
        self = .second(try container.decode(Second.self))
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .first(let first): try container.encode(first)
      case .second(let second): try container.encode(second)
      }
    }
  }

  @Test func `random compositions`() {
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
