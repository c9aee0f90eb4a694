#if HTTPCache
import Foundation
import HTTPCachingRules
import Larder
import LarderTesting
import Synchronization
import Testing

@testable import LarderHTTPCache

/// Tasks that fetch, read, replace, evict and invalidate responses, of which each has a version that only grows.
///
/// Their reports must still hold after a crash: a response that is found later is not older.
final class StorageWorkload<Base: DataStore>: Sendable where Base.Value == [UInt8] {
  /// The number of URLs, of which each has one fetch at a time, as an HTTP cache ensures.
  static var urlCount: Int { 12 }

  /// The error of a response that must not be there.
  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  private let storage: ResponseStorage<Base>
  private let lengths: ClosedRange<Int>
  private let versions: Atomic<Int64>
  private let floors: Locked<[Int64]>
  private let gates = (0..<urlCount).map { _ in WriteGate() }
  private let report: @Sendable (StorageReport) -> Void

  /// Creates a workload.
  ///
  /// - Parameters:
  ///   - lengths: The lengths of the bodies.
  ///   - start: The version that the first response follows. It is greater than all stored ones.
  ///   - report: A closure that receives what is done.
  init(
    _ storage: ResponseStorage<Base>, lengths: ClosedRange<Int>, after start: Int64,
    report: @escaping @Sendable (StorageReport) -> Void
  ) {
    (self.storage, self.lengths, self.report) = (storage, lengths, report)
    versions = Atomic(start)
    floors = Locked([Int64](repeating: 0, count: Self.urlCount))
  }

  static func url(_ number: Int) -> String { "https://\(number % 2 == 0 ? "a" : "b").example/\(number)" }

  /// Runs eight tasks until one of them throws.
  ///
  /// - Parameter steps: The number of steps of each task. Defaults to no limit.
  func run(seed: UInt64, steps: Int = .max) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          var generator = SeededGenerator(seed: seed &+ UInt64(task))
          for _ in 0..<steps { try await self.step(using: &generator) }
        }
      }
      try await group.waitForAll()
    }
  }

  private func step(using generator: inout SeededGenerator) async throws {
    let number = Int.random(in: 0..<Self.urlCount, using: &generator)
    let url = Self.url(number)
    switch Int.random(in: 0..<40, using: &generator) {
    case 0..<18: try await fetch(number, using: &generator)
    case 18..<20: try await invalidate([number]) { try await storage.invalidate(url: url) }
    case 20:
      let numbers = (0..<Self.urlCount).filter { $0 % 2 == 0 }
      try await invalidate(numbers) { try await storage.invalidate(prefix: "https://a.") }
    case 21 where number == 0: try await invalidate(Array(0..<Self.urlCount)) { try await storage.removeAll() }
    case 22: try await storage.remove(try await storage.entries(url: url, partition: []))
    case 23: try await storage.sweep()
    default: try await read(number)
    }
  }

  private func fetch(_ number: Int, using generator: inout SeededGenerator) async throws {
    // Most bodies are small.
    let share = pow(Double.random(in: 0..<1, using: &generator), 3)
    let length = lengths.lowerBound + Int(share * Double(lengths.count))
    try await gates[number].withAccess(.exclusive) {
      let token = try await storage.beginFetch()
      let version = versions.add(1, ordering: .relaxed).newValue
      do {
        try await storage.fetch(Self.url(number), version: version, length: length, token: token)
        done(number, version)
      } catch is StorageRefusal {
        // It was invalidated, or there was no room.
      }
    }
  }

  private func invalidate(_ numbers: [Int], _ body: () async throws -> Void) async throws {
    // A response that comes later than all that have begun is not affected.
    let version = versions.load(ordering: .relaxed)
    try await body()
    for number in numbers { done(number, version + 1) }
  }

  private func done(_ number: Int, _ version: Int64) {
    floors.withLock { $0[number] = max($0[number], version) }
    report(StorageReport(number: number, floor: version))
  }

  private func read(_ number: Int) async throws {
    let floor = floors.withLock { $0[number] }
    try await storage.check(number, floor: floor)
  }
}

/// A report that the responses for a URL are not older than a version.
struct StorageReport: Sendable {
  let number: Int
  let floor: Int64

  var line: String { "\(number) \(floor)\n" }

  /// Returns the least version that each URL may have.
  static func floors(_ reports: [StorageReport]) -> [Int: Int64] {
    Dictionary(reports.map { ($0.number, $0.floor) }) { max($0, $1) }
  }

  /// Reads the lines of a process that was killed.
  static func read(_ path: String) throws -> [StorageReport] {
    guard FileManager.default.fileExists(atPath: path) else { return [] }
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false)
    // The last line may be incomplete.
    return try lines.dropLast().map { line in
      let numbers = line.split(separator: " ").compactMap { Int64($0) }
      try #require(numbers.count == 2)
      return StorageReport(number: Int(numbers[0]), floor: numbers[1])
    }
  }
}

extension ResponseStorage {
  /// Checks that the response for a URL is whole and not older than a version, if there is one.
  func check(_ number: Int, floor: Int64) async throws {
    for entry in try await entries(url: StorageWorkload<Base>.url(number), partition: []) {
      let version = entry.response.version
      guard version >= floor else {
        throw StorageWorkload<Base>.Violation(description: "URL \(number) has version \(version), older than \(floor)")
      }
      guard let reader = try await reader(of: entry) else { continue }
      noteUse(of: entry)
      let bytes = try await reader.allBytes()
      guard TestBody.isWhole(bytes, version, length: entry.response.length ?? -1) else {
        throw StorageWorkload<Base>.Violation(description: "URL \(number), version \(version) is not whole")
      }
    }
  }

  /// Expects that everything is as it must be after a crash, and that a sweep leaves nothing behind.
  ///
  /// - Parameter advance: A closure that moves the clock beyond all timeouts.
  func expectRecovered(
    _ reports: [StorageReport], _ comment: Comment, advance: () -> Void
  ) async throws {
    try await expectConsistent(comment)
    // The first sweep retires abandoned bodies, the second one removes them.
    for _ in 0..<2 {
      advance()
      try await sweep()
    }
    try await expectConsistent(isSwept: true, comment)
    for (number, floor) in StorageReport.floors(reports) {
      do {
        try await check(number, floor: floor)
      } catch {
        Issue.record("\(comment): \(error)")
      }
    }
  }
}
#endif
