import Foundation
import Larder
import LarderTesting
import PeakMemory
import PostgresServers

/// Fills a store with entries of 16 bytes under ascending keys, or measures it, and prints the figures as JSON.
///
/// `Scripts/growth` runs one process for each measurement, because a process does not return memory that it once had.
@main
enum Growth {
  private static let roundCount = 31
  private static let getCount = 1000
  private static let putCount = 100
  private static let pageCount = 50
  private static let pageSize = 100

  /// The figures of a measurement: times of one operation in seconds, and sizes in bytes.
  private struct Figures: Encodable {
    var open: Double?
    var fill: Double?
    var get: Double?
    var put: Double?
    var page: Double?
    var memory: Int?
  }

  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 6, ["fill", "measure", "sample"].contains(arguments[1]),
      let kind = SubjectKind(rawValue: arguments[2]),
      let count = Int(arguments[4]), count >= 1000, let seed = UInt64(arguments[5])
    else {
      let kinds = SubjectKind.allCases.map(\.rawValue).joined(separator: "|")
      FileHandle.standardError.write(
        Data("usage: Growth fill|measure|sample \(kinds) FOLDER COUNT SEED, with a count of at least 1000\n".utf8))
      exit(64)
    }
    var figures = Figures()
    let server = kind == .postgres ? try await PostgresServer.local : nil
    let schema = try await server?.newSchema()
    let memory = try PeakMemory.bytes()
    let start = ContinuousClock.now
    let subject = try await kind.open(in: arguments[3], server, schema)
    figures.open = seconds(since: start)
    if arguments[1] == "fill" || !kind.isKept {
      try await fill(subject, to: count, &figures)
    }
    if arguments[1] != "fill" {
      // A sample has a tenth of the operations, for files that are larger than the memory.
      let share = arguments[1] == "sample" ? 10 : 1
      try await measure(subject, of: count, share, SeededGenerator(seed: seed), &figures)
      figures.memory = try PeakMemory.bytes() - memory
    }
    try await subject.close()
    try await server?.close()
    print(String(decoding: try JSONEncoder().encode(figures), as: UTF8.self))
  }

  private static func seconds(since start: ContinuousClock.Instant) -> Double {
    (ContinuousClock.now - start) / .seconds(1)
  }

  /// Adds the entries that are missing, in commits of 1,000.
  private static func fill(_ subject: Subject, to count: Int, _ figures: inout Figures) async throws {
    let first = try await subject.count()
    let start = ContinuousClock.now
    var next = first
    while next < count {
      let end = min(next + 1000, count)
      try await subject.add(next..<end)
      next = end
    }
    if count > first { figures.fill = seconds(since: start) / Double(count - first) }
  }

  private static func measure(
    _ subject: Subject, of count: Int, _ share: Int, _ generator: SeededGenerator, _ figures: inout Figures
  ) async throws {
    var generator = generator
    if let get = subject.get {
      figures.get = try await median(of: getCount / share, in: 0..<count) { keys, _ in try await get(keys) }
    }
    if let page = subject.page {
      figures.page = try await median(of: pageCount / share, in: count * 3 / 8..<count * 5 / 8) { keys, _ in
        try await page(keys, pageSize)
      }
    }
    figures.put = try await median(of: putCount, in: 0..<count, subject.put)

    /// Returns the median of the time of one operation with a random key, after a round to warm up.
    func median(
      of operations: Int, in range: Range<Int>, _ body: (Keys, _ number: UInt64) async throws -> Void
    ) async throws -> Double {
      var times: [Double] = []
      for _ in 0...roundCount {
        let keys = Keys((0..<operations).map { _ in Int.random(in: range, using: &generator) })
        let number = generator.next()
        let start = ContinuousClock.now
        try await body(keys, number)
        times.append(seconds(since: start) / Double(operations))
      }
      return times.dropFirst().sorted()[roundCount / 2]
    }
  }
}
