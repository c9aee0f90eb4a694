import Larder
import LarderBatching
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderBatching/LarderBatching.docc/Batching.md`.
///
/// It must appear in the guide unchanged, and it must work.
@Suite struct BatchingGuideTests {
  struct Order: Codable, Equatable {
    var item: String
  }

  struct Position: Codable, Equatable {
    var latitude: Double
  }

  @Test func callersShareACommit() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let order = Order(item: "tea")
    let orders = try await LMDBStore<Order>(path: folder + "/orders").batched()
    try await orders.setValue(order, forKey: "order:17")
    #expect(try orders.base.value(forKey: "order:17") == order)
    #expect(orders.waitingCount == 0)
    try await orders.close()

    let photos = try await LMDBStore(path: folder + "/photos", codec: .raw)
      .batched(bounds: BatchBounds(changes: 1000, bytes: 4 << 20) { $0.count })
    try await photos.setValue([1, 2, 3], forKey: "7")
    #expect(try photos.base.value(forKey: "7") == [1, 2, 3])
    try await photos.close()
    try location.remove()
  }

  @Test func writesAreWrittenLater() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let position = Position(latitude: 59.9)
    let positions = try await LMDBStore<Position>(path: folder + "/positions")
      .writeBehind(maximumAge: .milliseconds(500)) { failure in
        print("\(failure.changes.count) positions were not written: \(failure.error)")
      }
    try await positions.setValue(position, forKey: "vehicle:7")  // accepted
    try await positions.flush()  // written
    #expect(try positions.base.value(forKey: "vehicle:7") == position)
    #expect(positions.statistics.pendingChanges == 0)
    #expect(positions.information.durability == .accepted)
    try await positions.close()
    try location.remove()
  }

  @Test func theGuideShowsThisCode() throws {
    let guide = try Guide("Modules/Decorators/LarderBatching/LarderBatching.docc/Batching.md")
    #expect(guide.pieces.count == 4)
    #expect(try guide.piecesMissing() == [])
  }
}
