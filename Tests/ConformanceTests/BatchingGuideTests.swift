#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
// snippet.group-commit-3
import LarderBatching
import LarderJSON
import LarderLMDB
// snippet.end
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderBatching/LarderBatching.docc/Batching.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct BatchingGuideTests {
  struct Order: Codable, Equatable {
    var item: String
  }

  struct Position: Codable, Equatable {
    var latitude: Double
  }

  /// The next object writes the changes that closing could not write until its limit.
  @Test func `unwritten changes are saved and restored`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let base = MemoryStore<Position>().faulty()
    base.schedule(.suspension(), on: .apply, probability: 1)
    let shutdownTime = Duration.milliseconds(1)
    do {
      let positions = base.writeBehind()
      // snippet.outages-2
      let rescue = try await JSONFileStore<UnwrittenChange<Position>>(path: folder + "/unwritten.json")
      try await positions.restoreChanges(from: rescue)
      // snippet.end
      try await positions.setValue(Position(latitude: 59.9), forKey: "vehicle:7")
      try await positions.removeValue(forKey: "vehicle:8")
      // snippet.outages
      let saved = try await positions.close(within: shutdownTime, savingTo: rescue)
      // snippet.end
      #expect(saved == 2)
      try await rescue.close()
    }
    let text = try String(contentsOfFile: folder + "/unwritten.json", encoding: .utf8)
    #expect(text.contains(#"{"set":{"latitude":59.9}}"#) && text.contains(#"{"removed":true}"#))
    let memory = MemoryStore<Position>()
    let positions = memory.writeBehind()
    let rescue = try await JSONFileStore<UnwrittenChange<Position>>(path: folder + "/unwritten.json")
    try await positions.restoreChanges(from: rescue)
    #expect(try memory.value(forKey: "vehicle:7") == Position(latitude: 59.9))
    #expect(try rescue.count(in: .all) == 0)
    try await rescue.close()
    try await positions.close()
    try location.remove()
  }

  @Test func `callers share a commit`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let order = Order(item: "tea")
    // snippet.group-commit-2
    let orders = try await LMDBStore<Order>(path: folder + "/orders").batched()
    try await orders.setValue(order, forKey: "order:17")
    // snippet.end
    #expect(try orders.base.value(forKey: "order:17") == order)
    #expect(orders.waitingCount == 0)
    try await orders.close()

    // snippet.group-commit
    let photos = try await LMDBStore(path: folder + "/photos", codec: .raw)
      .batched(bounds: BatchBounds(changes: 1000, bytes: 4 << 20) { $0.count })
    // snippet.end
    try await photos.setValue([1, 2, 3], forKey: "7")
    #expect(try photos.base.value(forKey: "7") == [1, 2, 3])
    try await photos.close()
    try location.remove()
  }

  @Test func `writes are written later`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let position = Position(latitude: 59.9)
    // snippet.write-behind
    let positions = try await LMDBStore<Position>(path: folder + "/positions")
      .writeBehind(maximumAge: .milliseconds(500)) { failure in
        print("\(failure.changes.count) positions were not written: \(failure.error)")
      }
    try await positions.setValue(position, forKey: "vehicle:7")  // accepted
    try await positions.flush()  // written
    // snippet.end
    #expect(try positions.base.value(forKey: "vehicle:7") == position)
    #expect(positions.statistics().pendingChanges == 0)
    #expect(positions.information.durability == .accepted)
    try await positions.close()
    try location.remove()
  }
}
#endif
