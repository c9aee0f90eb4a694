import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderQueue

/// Files in version 1 of the format, created by the program that used it.
@Suite struct QueueVersion1Tests {
  /// Opens a queue on a copy of the files, at the time of their creation.
  private static func open(_ kind: String, at path: String, _ clock: ManualClock) async throws -> QueueStore<String> {
    let files = FilePaths.join(FilePaths.split(#filePath).directory, "Fixtures/version-1-\(kind)")
    if !FileManager.default.fileExists(atPath: path) {
      try FileManager.default.copyItem(atPath: files, toPath: path)
    }
    return try await QueueStore<String>(
      path: path, codec: .cbor(), configuration: QueueConfiguration(maximumDeliveries: 2, segmentSize: 4096),
      environment: .manual(clock))
  }

  private static func expectContent(_ queue: QueueStore<String>) async throws {
    #expect(!queue.recovery.hasDamage)
    #expect(try await queue.counts() == QueueCounts(waiting: 21, delayed: 2, leased: 13, dead: 1))
    let items = (30..<50).map { "item \($0)" }
    #expect(try await queue.peek(max: 99).map(\.value) == items + ["requeued"])
    #expect(try await queue.value(forKey: "item-set") == "replaced")
    #expect(try await queue.value(forKey: "removed") == nil)
    let letter = try #require(try await queue.deadLetters().first)
    #expect(try letter.key == "dead" && letter.value.get() == "dead" && letter.attempts == 2)
    #expect(letter.reason == .tooManyDeliveries)
  }

  @Test(arguments: ["closed", "crashed", "buffered"]) func version1QueuesAreReadAndContinued(_ kind: String)
    async throws
  {
    let folder = try TemporaryFolder()
    let path = folder.path("queue")
    let clock = ManualClock()
    var queue = try await QueueVersion1Tests.open(kind, at: path, clock)
    try await QueueVersion1Tests.expectContent(queue)
    // Reading writes nothing.
    try await queue.close()
    queue = try await QueueVersion1Tests.open(kind, at: path, clock)
    try await QueueVersion1Tests.expectContent(queue)
    #expect(try await queue.enqueue("again", id: "acknowledged").isDuplicate)
    // The first write starts a segment of the current version.
    let added = try await queue.enqueue("new")
    #expect(added.sequence > 69)
    try await queue.removeValue(forKey: added.key)
    try await QueueVersion1Tests.expectContent(queue)
    try await queue.close()
    queue = try await QueueVersion1Tests.open(kind, at: path, clock)
    try await QueueVersion1Tests.expectContent(queue)
    #expect(try await queue.verify().findings.isEmpty == true)
    try await queue.compact()
    try await queue.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    #expect(!names.contains("segment-00000001") && !names.contains("segment-00000003"))
    queue = try await QueueVersion1Tests.open(kind, at: path, clock)
    try await QueueVersion1Tests.expectContent(queue)
    // The deliveries of delayed and leased items are counted.
    clock.advance(by: .seconds(7200))
    let received = try await queue.receive(max: 99, lease: .seconds(60))
    let attempts = Dictionary(received.map { ($0.value, $0.attempt) }, uniquingKeysWith: { $1 })
    #expect(attempts["released"] == 2 && attempts["leased"] == 2 && attempts["item 30"] == 2)
    #expect(attempts["requeued"] == 1)
    try await queue.close()
  }
}
