#if Compression && HTTPCache && LMDB
import Foundation
import HTTPCachingRules
import Larder
import LarderCompressedFile
import LarderJSON
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Histories of tasks, of several processes, under faults and power cuts.
@Suite(.timeLimit(.minutes(60))) struct StorageHistoryTests {
  @Test func `tasks of one process see whole responses in order`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "tasks of an HTTP cache's storage")
    for round in 0..<ConformanceSuite.roundsOfProcess {
      let clock = ManualClock()
      let base = MemoryStore<[UInt8]>().faulty()
      base.schedule(.yields(upTo: 2), probability: 1)
      let storage = try await ResponseStorage(base, options: smallOptions(clock, capacity: 8_000_000))
      let reports = Locked<[StorageReport]>([])
      let workload = StorageWorkload(storage, lengths: 0...2_500_000, after: 0) { report in
        reports.withLock { $0.append(report) }
      }
      try await workload.run(seed: generator.next(), steps: 12)
      #expect(try await storage.usage().bytes <= 8_000_000)
      await storage.settleUses()
      try await storage.expectRecovered(reports.withLock { $0 }, "seed \(seed), round \(round)") {
        clock.advance(by: .seconds(61))
      }
    }
  }

  /// Two storages over one store, as in two processes, with writes that fail.
  @Test func `processes keep the accounts together`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "processes of an HTTP cache's storage")
    for round in 0..<ConformanceSuite.roundsOfProcess {
      let clock = ManualClock()
      let memory = MemoryStore<[UInt8]>()
      let base = memory.faulty()
      let options = smallOptions(clock, capacity: 4_200_000)
      let storages = [
        try await ResponseStorage(base, options: options), try await ResponseStorage(base, options: options),
      ]
      base.schedule(.yields(upTo: 3), probability: 1)
      base.schedule(.error(.ioFailed), on: .update, probability: 0.02)
      base.schedule(.error(.ioFailed, .after), on: .update, probability: 0.02)
      let invalidated = SharedNumber()
      let versions = SharedNumber()
      await withTaskGroup(of: Void.self) { group in
        for task in 0..<8 {
          let (storage, seed) = (storages[task % 2], generator.next())
          group.addTask {
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<15 {
              do {
                let kind = Int.random(in: 0..<10, using: &generator)
                let url = "https://a/\(Int.random(in: 0..<6, using: &generator))"
                switch kind {
                case 0:
                  let version = versions.value
                  try await storage.removeAll()
                  invalidated.raise(to: version + 1)
                case 1: try await storage.sweep()
                case 2: for entry in try await storage.entries(url: url, partition: []) { storage.noteUse(of: entry) }
                case 3: try await storage.remove(try await storage.entries(url: url, partition: []))
                default:
                  let token = try await storage.beginFetch()
                  let version = versions.next()
                  let length = Int.random(in: 0..<(kind == 4 ? 2_000_000 : 100_000), using: &generator)
                  try await storage.fetch(url, version: version, length: length, token: token)
                }
              } catch {
                #expect(error is StorageRefusal || (error as? StoreError)?.code == .ioFailed, "\(error)")
              }
            }
          }
        }
      }
      base.clearFaults()
      for storage in storages { await storage.settleUses() }
      let storage = try await ResponseStorage(memory, options: options)
      #expect(try await storage.usage().bytes <= 4_200_000)
      let floor = invalidated.value
      for entry in try await storage.entries(in: storage.layout.responses, limit: .max).entries {
        let response = entry.response
        #expect(response.version >= floor, "seed \(seed), round \(round)")
        let body = try #require(try await storage.body(of: entry))
        #expect(TestBody.isWhole(body, response.version, length: try #require(response.length)))
      }
      try await storage.expectRecovered([], "seed \(seed), round \(round)") { clock.advance(by: .seconds(61)) }
    }
  }

  // MARK: Power cuts

  /// The stores on the simulated disk.
  enum DiskStore: CaseIterable {
    case json, compressed
  }

  @Test(arguments: DiskStore.allCases) func `power cuts leave whole responses`(_ kind: DiskStore) async throws {
    switch kind {
    case .json:
      try await losePower("json") { try await JSONFileStore(path: "/store", codec: Base64Codec(), fileSystem: $0) }
    case .compressed:
      try await losePower("compressed") {
        try await CompressedFileStore(path: "/store", codec: Base64Codec(), fileSystem: $0)
      }
    }
  }

  private func losePower<Store: DataStore>(
    _ name: String, open: (SimulatedFileSystem) async throws -> Store
  ) async throws where Store.Value == [UInt8] {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "power cuts of an HTTP cache over \(name)")
    var (cuts, responses) = (0, 0)
    for number in 0..<max(2, ConformanceSuite.roundsOfProcess) {
      let clock = ManualClock()
      let disk = SimulatedFileSystem(seed: generator.next())
      let reports = Locked<[StorageReport]>([])
      disk.schedule(.powerLoss, atOperation: Int.random(in: 20...300, using: &generator))
      do {
        let storage = try await ResponseStorage(try await open(disk), options: smallOptions(clock, capacity: 9_000_000))
        let workload = StorageWorkload(storage, lengths: 0...4_000_000, after: 0) { report in
          reports.withLock { $0.append(report) }
        }
        try await workload.run(seed: generator.next(), steps: 30)
      } catch is StoreError {
        cuts += 1
      } catch is CancellationError {
        cuts += 1
      }
      if disk.hasPower { disk.losePower() } else { disk.restart() }
      disk.clearFaults()
      let store = try await open(disk)
      let storage = try await ResponseStorage(store, options: smallOptions(clock, capacity: 9_000_000))
      try await storage.expectRecovered(reports.withLock { $0 }, "\(name), seed \(seed), cut \(number)") {
        clock.advance(by: .seconds(61))
      }
      responses += try await storage.usage().responses
      try await store.close()
    }
    print("\(responses) responses were read after \(cuts) power cuts (\(name))")
    #expect(cuts > 0 && responses > 0)
  }

  // MARK: Capacity

  /// The capacity holds while tasks write ten times as much, and the file of LMDB has at most twice the size.
  ///
  /// With at least 100 rounds, the capacity is 100 MB.
  @Test func `the capacity holds`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "capacity of an HTTP cache")
    let capacity = ConformanceSuite.roundsOfProcess >= 100 ? 100_000_000 : 10_000_000
    let folder = try TemporaryFolder()
    let base = try await LMDBStore(path: folder.path("cache"), codec: .raw, durability: .buffered)
    let storage = try await ResponseStorage(base, options: StorageOptions(capacity: capacity))
    let versions = SharedNumber()
    let greatest = SharedNumber()
    try await withThrowingTaskGroup(of: Void.self) { writers in
      for _ in 0..<8 {
        let seed = generator.next()
        writers.addTask {
          var generator = SeededGenerator(seed: seed)
          var rest = 10 * capacity / 8
          while rest > 0 {
            let length = Int(pow(Double.random(in: 0..<1, using: &generator), 2) * Double(capacity / 20))
            let version = versions.next()
            try await storage.fetch("https://a/\(version % 1000)", version: version, length: length)
            rest -= length
            // The others are in the middle of their bodies.
            greatest.raise(to: Int64(try await storage.usage().bytes))
          }
        }
      }
      try await writers.waitForAll()
    }
    #expect(greatest.value <= capacity, "seed \(seed)")
    let usage = try await storage.usage()
    #expect(usage.bytes > capacity * 7 / 10 && usage.bytes <= capacity)
    #expect(storage.counters.evictions > 0)
    try await storage.expectConsistent()
    try await base.close()
    let sizes = try FileManager.default.subpathsOfDirectory(atPath: folder.path).map { name in
      try FileManager.default.attributesOfItem(atPath: folder.path(name))[.size] as? Int ?? 0
    }
    let size = sizes.reduce(0, +)
    print("HTTP cache of \(capacity) bytes in \(size) bytes of LMDB, \(usage.responses) responses")
    #expect(size <= 2 * capacity, "seed \(seed)")
  }
}

/// A number that several tasks raise.
private final class SharedNumber: Sendable {
  private let number = Locked<Int64>(0)

  var value: Int64 { number.withLock { $0 } }

  func next() -> Int64 {
    number.withLock { number in
      number += 1
      return number
    }
  }

  func raise(to value: Int64) { number.withLock { $0 = max($0, value) } }
}

/// A codec that writes bytes as a JSON string in Base64, for stores of JSON.
private struct Base64Codec: Codec {
  var name: String { "base64" }
  var format: CodecFormat { .json }

  func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) throws {
    bytes.append(UInt8(ascii: "\""))
    bytes.append(contentsOf: Data(value).base64EncodedData())
    bytes.append(UInt8(ascii: "\""))
  }

  func decode(_ bytes: RawSpan, context: ValueContext) throws -> [UInt8] {
    let text = bytes.withUnsafeBytes { Data($0.dropFirst().dropLast()) }
    return Array(try #require(Data(base64Encoded: text)))
  }
}
#endif
