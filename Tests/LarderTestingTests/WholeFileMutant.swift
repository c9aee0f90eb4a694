import Foundation
import Larder
import LarderFiles
import LarderTesting
import Synchronization

/// A store that writes its whole file anew for each change, with one fault or none.
final class WholeFileMutant: DataStore {
  typealias Value = SampleValue?

  private struct Record: Codable {
    var key: [UInt8]
    var value: [UInt8]
  }

  private let path: String
  private let fault: ProcessFault?
  private let disk = RecordDisk()
  private let base: RecordStore<SampleValue?>
  private let lock: Mutex<FileLock?>

  init(path: String, fault: ProcessFault?) throws {
    self.path = path
    self.fault = fault
    let lockPath = fault == .locksOnlyItsProcess ? "\(path).lock\(getpid())" : "\(path).lock"
    guard let lock = try FileLock.acquire(lockPath, in: POSIXFileSystem()) else {
      throw StoreError(.locked, during: .open, store: "records", message: "it is open already")
    }
    self.lock = Mutex(lock)
    base = try RecordStore(disk: disk)
    guard FileManager.default.fileExists(atPath: path) else { return }
    do {
      try load()
    } catch {
      base.close()
      throw StoreError(.corrupted, during: .open, store: "records", message: "it is damaged", underlying: error)
    }
  }

  private func load() throws {
    let content: Data
    do {
      content = try Data(contentsOf: URL(filePath: path))
    } catch  where fault == .unreadableIsEmpty {
      return
    }
    do {
      let records = try JSONDecoder().decode([Record].self, from: content)
      disk.state.withLock { state in
        var displaced: [[UInt8]] = []
        for record in records {
          state.records.apply(.set(StoreKey(bytes: record.key), record.value), displacing: &displaced)
        }
      }
    } catch {
      if fault == .damagedIsEmpty { return }
      if fault == .removesDamaged { try FileManager.default.removeItem(atPath: path) }
      throw error
    }
  }

  private func save() throws {
    // Nobody else writes while this does.
    try disk.state.withLock { state in
      let records = state.records.entries(in: .all, limit: .max, order: .ascending)
        .map { Record(key: $0.key.bytes, value: $0.value) }
      let content = try JSONEncoder().encode(records)
      if fault == .writesInPlace {
        try content.write(to: URL(filePath: path))
      } else {
        try POSIXFileSystem().replaceFile(at: path) { try $0.write(Array(content)) }
      }
    }
  }

  var information: StoreInformation {
    var information = base.information
    information.maintenance = nil
    return information
  }

  func value(forKey key: StoreKey) throws -> Value? { try base.value(forKey: key) }

  func values(forKeys keys: [StoreKey]) throws -> [Value?] { try base.values(forKeys: keys) }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) throws -> Int { try base.count(in: range) }

  func apply(_ changes: ChangeBatch<Value>) throws {
    try base.apply(changes)
    if fault != .writesLate { try save() }
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) throws -> Result {
    let result = try base.update(keys, body)
    if fault != .writesLate { try save() }
    return result
  }

  func synchronize() throws {
    try base.synchronize()
    if fault == .writesLate { try save() }
  }

  func close() throws {
    let isFirst = lock.withLock { $0 != nil }
    if isFirst, fault == .writesLate { try save() }
    base.close()
    try lock.withLock { lock in
      try lock?.release()
      lock = nil
    }
  }
}
