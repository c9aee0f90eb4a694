import Foundation
package import Larder
import Testing

/// Fills a real disk through a store: nothing is lost, every write fails in the same way, and the store continues once
/// there is room.
///
/// - Parameters:
///   - disk: An empty disk of 4 MB.
///   - valueSize: The size of the values, in bytes.
///   - open: Opens the store, which has its files in the folder of the disk.
///   - write: Writes a value through another way than the methods of the store.
package func expectAFullDiskToLoseNothing<Store: DataStore & MaintainableStore>(
  _ disk: TemporaryFileSystem, valueSize: Int, open: () async throws -> Store,
  writingInAnotherWay write: (Store, _ value: [UInt8]) async throws -> Void
) async throws where Store.Value == [UInt8] {
  let store = try await open()
  let ballast = "\(disk.path)/ballast"
  let files = try FileManager.default.contentsOfDirectory(atPath: disk.path)
  try Data(count: 2 << 20).write(to: URL(filePath: ballast))
  var written = 0
  while written < 1000 {
    do {
      try await store.setValue(
        [UInt8](repeating: UInt8(truncatingIfNeeded: written), count: valueSize), forKey: "\(written)")
      written += 1
    } catch let error as StoreError {
      #expect(error.code == .full, "\(error)")
      #expect(error.outcome == .nothingChanged)
      #expect(error.isRetryable)
      break
    }
  }
  #expect(written > 2 && written < 1000)
  // Repeated attempts of every kind of write fail in the same way, and everything stays readable.
  let value = [UInt8](repeating: 1, count: valueSize)
  for _ in 0..<3 {
    let error = await expectStoreError(.full) { try await store.apply([.set("a", value), .set("b", value)]) }
    #expect(error?.outcome == .nothingChanged)
    await expectStoreError(.full) { try await store.update("c") { $0 = value } }
    await expectStoreError(.full) { try await write(store, value) }
  }
  #expect(try await store.count(in: .all) == written)
  for number in 0..<written {
    #expect(try await store.value(forKey: "\(number)")?.first == UInt8(truncatingIfNeeded: number))
  }
  await expectStoreError(.full) { try await store.backup(to: "\(disk.path)/backup") }
  try FileManager.default.removeItem(atPath: ballast)
  #expect(Set(try FileManager.default.contentsOfDirectory(atPath: disk.path)) == Set(files))
  try await store.setValue(value, forKey: "more")
  #expect(try await store.count(in: .all) == written + 1)
  let report = try await store.verify()
  #expect(report.entryCount == written + 1 && report.findings.isEmpty)
  try await store.close()
  let again = try await open()
  #expect(try await again.count(in: .all) == written + 1)
  try await again.close()
}
