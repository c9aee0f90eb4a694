import Foundation
import Larder
import LarderQueue
import TestSupport
import Testing

/// Segments whose content is exchanged in place while the queue is open.
@Suite struct QueueExchangedFilesTests {
  @Test(arguments: [false, true]) func `nothing is appended to a segment that was restored in place`(
    hasRolledOver: Bool
  ) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("queue")
    let segment = "\(path)/segment-00000001"
    let queue = try await QueueStore<Int>(path: path, configuration: QueueConfiguration(segmentSize: 1 << 16))
    try await queue.enqueue([1, 2, 3].map { QueueInput($0) })
    let old = try Data(contentsOf: URL(filePath: segment))
    let items = (0..<200).map { QueueInput($0) }
    repeat {
      try await queue.enqueue(items)
    } while hasRolledOver && !FileManager.default.fileExists(atPath: "\(path)/segment-00000002")
    // As `cp` does.
    let file = try FileHandle(forUpdating: URL(filePath: segment))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: old)
    try file.close()
    var error: StoreError?
    // If the segment is not the current one, the next segment would record it.
    for _ in 0..<100 where error == nil {
      do {
        try await queue.enqueue(items)
        #expect(hasRolledOver)
      } catch let thrown as StoreError {
        error = thrown
      }
    }
    #expect(error?.code == .conflict && error?.outcome == .nothingChanged)
    #expect(error?.message.contains("segment-00000001 was changed by another program") == true)
    #expect(try Data(contentsOf: URL(filePath: segment)) == old)
    if hasRolledOver {
      try await queue.close()
    } else {
      await expectStoreError(.conflict) { try await queue.close() }
      let again = try await QueueStore<Int>(path: path)
      #expect(try await again.count(in: .all) == 3)
      try await again.close()
    }
  }
}
