import Foundation
import Larder
import LarderLMDB
import RawLMDB

/// An `LMDBStore` of 1,000,000 entries of 200 bytes, next to LMDB called from C.
enum LMDBStores {
  private static let entryCount = 1_000_000
  private static let getCount = 100_000
  private static let batchCount = 10_000
  private static let value = (0..<200).map { UInt8(truncatingIfNeeded: $0) }

  static let comparisons = [
    Comparison(
      gets, beside: [Comparison.Yardstick(rawGets, limit: 1.2), Comparison.Yardstick(synchronousGets)]),
    Comparison(spans, beside: [Comparison.Yardstick(rawSpans, limit: 1.15)]),
    Comparison(twoThreads, beside: [Comparison.Yardstick(gets, limit: 1 / 1.5)]),
    Comparison(
      puts("batch of 10,000 puts into an LMDBStore, sorted", isSorted: true),
      beside: [Comparison.Yardstick(rawPuts, limit: 1.15)]),
    Comparison(
      puts("batch of 10,000 puts into an LMDBStore, unsorted", isSorted: false),
      beside: [Comparison.Yardstick(rawPuts, limit: 1.15)]),
    Comparison(pages, beside: [Comparison.Yardstick(rawScan, limit: 1.5)], roundCount: 11),
    Comparison(cursor, beside: [Comparison.Yardstick(rawScanIntoBuffer, limit: 1.3)], roundCount: 11),
    Comparison(
      middlePage(of: 5_000_000), beside: [Comparison.Yardstick(middlePage(of: 1000), limit: 2)]),
  ]

  // MARK: Reading

  private static let gets = Workload("get from an LMDBStore of 1,000,000 entries", operationCount: getCount) { folder in
    let store = try await filledStore(in: folder)
    let keys = FixedSizeKeys(SampleRecords.shuffledNumbers(entryCount).prefix(getCount))
    return { try await get(keys.keys, from: store) }
  }

  /// Reads values as a generic program does, which only knows that it has a store.
  private static func get(_ keys: [StoreKey], from store: some DataStore<[UInt8]>) async throws {
    var sum: UInt64 = 0
    for key in keys {
      sum &+= UInt64(try await store.value(forKey: key)?.first ?? 0)
    }
    consume(sum)
  }

  private static let synchronousGets = Workload("get from an LMDBStore, without await", operationCount: getCount) {
    folder in
    let store = try await filledStore(in: folder)
    let keys = FixedSizeKeys(SampleRecords.shuffledNumbers(entryCount).prefix(getCount))
    return {
      var sum: UInt64 = 0
      for key in keys.keys {
        sum &+= UInt64(try store.value(forKey: key)?.first ?? 0)
      }
      consume(sum)
    }
  }

  private static let rawGets = Workload(
    "mdb_txn_renew, mdb_get and a malloc'ed copy, in C", operationCount: getCount
  ) { folder in
    let environment = try filledEnvironment(in: folder)
    let keys = FixedSizeKeys(SampleRecords.shuffledNumbers(entryCount).prefix(getCount))
    return { consume(try environment.getCopies(keys)) }
  }

  private static let spans = Workload(
    "span of a value in one read transaction of 1,000,000 entries", operationCount: getCount
  ) { folder in
    let environment = try await LMDBEnvironment(path: folder.newPath())
    let store = try await filledStore(in: environment)
    let keys = FixedSizeKeys(SampleRecords.shuffledNumbers(entryCount).prefix(getCount))
    return {
      let sum = try environment.read { transaction in
        var sum: UInt64 = 0
        for key in keys.keys {
          sum &+= try transaction.withBytes(forKey: key, in: store) { bytes in
            guard let bytes else { return 0 }
            return UInt64(bytes.unsafeLoad(as: UInt8.self))
              &+ UInt64(bytes.unsafeLoad(fromByteOffset: bytes.byteCount - 1, as: UInt8.self))
          }
        }
        return sum
      }
      consume(sum)
    }
  }

  private static let rawSpans = Workload("mdb_get in one transaction, in C", operationCount: getCount) { folder in
    let environment = try filledEnvironment(in: folder)
    let keys = FixedSizeKeys(SampleRecords.shuffledNumbers(entryCount).prefix(getCount))
    return { consume(try environment.getInPlace(keys)) }
  }

  private static let twoThreads = Workload(
    "get from an LMDBStore of 1,000,000 entries, on two threads", operationCount: 2 * getCount
  ) { folder in
    let store = try await filledStore(in: folder)
    let numbers = SampleRecords.shuffledNumbers(entryCount)
    let halves = [
      FixedSizeKeys(numbers.prefix(getCount)), FixedSizeKeys(numbers.dropFirst(getCount).prefix(getCount)),
    ]
    return {
      try await withThrowingTaskGroup { group in
        for keys in halves {
          group.addTask { try await get(keys.keys, from: store) }
        }
        try await group.waitForAll()
      }
    }
  }

  private static func middlePage(of count: Int) -> Workload {
    let size = count.formatted(.number.locale(Locale(identifier: "en")))
    let name = "page of 50 from the middle of an LMDBStore of \(size) entries"
    return Workload(name, operationCount: 1000) { folder in
      let store = try await LMDBStore(path: folder.newPath(), codec: .raw)
      for first in stride(from: 0, to: count, by: 100_000) {
        try await store.apply(
          ChangeBatch((first..<min(first + 100_000, count)).map { .set(StoreKey(integer: $0), value) }))
      }
      let range = StoreKey(integer: count / 2)...
      return {
        for _ in 0..<1000 {
          consume(try await store.entries(in: range, limit: 50, order: .ascending).count)
        }
      }
    }
  }

  // MARK: Scanning

  private static let pages = Workload("scan of an LMDBStore by pages of 1,000", operationCount: entryCount) { folder in
    let store = try await filledStore(in: folder)
    return {
      var sum: UInt64 = 0
      for try await page in store.pages(of: .all, size: 1000) {
        for entry in page.entries { sum &+= UInt64(entry.value.first ?? 0) }
      }
      consume(sum)
    }
  }

  private static let rawScan = Workload(
    "cursor that mallocs each key and value, in C", operationCount: entryCount
  ) { folder in
    let environment = try filledEnvironment(in: folder)
    return { consume(try environment.scanCopies()) }
  }

  private static let cursor = Workload(
    "scan of an LMDBStore by a cursor's spans, copied into a buffer", operationCount: entryCount
  ) { folder in
    let environment = try await LMDBEnvironment(path: folder.newPath())
    let store = try await filledStore(in: environment)
    return {
      let sum = try environment.read { transaction in
        try transaction.withCursor(of: store) { cursor in
          let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
          defer { buffer.deallocate() }
          var sum: UInt64 = 0
          while try cursor.moveToNext() {
            cursor.withEntryBytes { key, value in
              key.withUnsafeBytes { buffer.copyMemory(from: $0) }
              value.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: buffer[key.byteCount...]).copyMemory(from: $0)
              }
              sum &+= UInt64(buffer[key.byteCount])
            }
          }
          return sum
        }
      }
      consume(sum)
    }
  }

  private static let rawScanIntoBuffer = Workload(
    "cursor that copies each key and value into a buffer, in C", operationCount: entryCount
  ) { folder in
    let environment = try filledEnvironment(in: folder)
    return { consume(try environment.scanIntoBuffer()) }
  }

  // MARK: Writing

  /// Batches of keys from all over the store, with other keys in each round.
  private static func puts(_ name: String, isSorted: Bool) -> Workload {
    Workload(name, operationCount: batchCount) { folder in
      let store = try await filledStore(in: folder)
      let batches = batches(isSorted: isSorted).map { keys in ChangeBatch(keys.keys.map { .set($0, value) }) }
      let turn = Turn(count: batches.count)
      return { try await store.apply(batches[turn.next()]) }
    }
  }

  private static let rawPuts = Workload("the same batch, sorted, in C", operationCount: batchCount) { folder in
    let environment = try filledEnvironment(in: folder)
    let batches = batches(isSorted: true)
    let turn = Turn(count: batches.count)
    return { try environment.put(batches[turn.next()], value: value) }
  }

  /// Returns the keys of some batches, each from all over the store.
  private static func batches(isSorted: Bool) -> [FixedSizeKeys] {
    let numbers = SampleRecords.shuffledNumbers(entryCount)
    return stride(from: 0, to: entryCount, by: batchCount).map { first in
      let batch = numbers[first..<first + batchCount]
      return FixedSizeKeys(isSorted ? batch.sorted() : Array(batch))
    }
  }

  // MARK: Preparing

  static func filledStore(in folder: ScratchFolder) async throws -> LMDBStore<[UInt8]> {
    try await filledStore(in: LMDBEnvironment(path: folder.newPath()))
  }

  private static func filledStore(in environment: LMDBEnvironment) async throws -> LMDBStore<[UInt8]> {
    let store = try await LMDBStore(in: environment, codec: .raw)
    let keys = FixedSizeKeys(0..<entryCount)
    for first in stride(from: 0, to: entryCount, by: 100_000) {
      try await store.apply(ChangeBatch(keys[first..<first + 100_000].keys.map { .set($0, value) }))
    }
    return store
  }

  static func filledEnvironment(in folder: ScratchFolder) throws -> RawEnvironment {
    let path = folder.newPath()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let environment = try RawEnvironment(path)
    let keys = FixedSizeKeys(0..<entryCount)
    for first in stride(from: 0, to: entryCount, by: 100_000) {
      try environment.put(keys[first..<first + 100_000], value: value)
    }
    return environment
  }
}
