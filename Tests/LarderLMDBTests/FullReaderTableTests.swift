#if LMDB
import CLMDB
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// Environments whose table of readers, which all processes share, has no free slot.
@Suite struct FullReaderTableTests {
  /// Takes all free slots with reads that do not end, and returns the reads.
  private static func fill(_ environment: LMDBEnvironment) throws -> [OpaquePointer] {
    let shared = environment.handle.environment
    shared.readers.abortIdleTransactions()
    var reads: [OpaquePointer] = []
    while true {
      var read: OpaquePointer?
      let code = mdb_txn_begin(shared.pointer, nil, UInt32(MDB_RDONLY), &read)
      if code == MDB_READERS_FULL { return reads }
      try LMDBError.check(code)
      reads.append(try #require(read))
    }
  }

  @Test func `reads fail until a slot is free and writes continue`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path)
    let store = try await LMDBStore<Int>(in: environment)
    try await store.setValue(1, forKey: "k")
    let reads = try FullReaderTableTests.fill(environment)
    #expect(reads.count == SharedEnvironment.maximumReaderCount)
    let operations: [(StoreOperation, @Sendable () async throws -> Void)] = [
      (.value, { _ = try store.value(forKey: "k") }), (.read, { try environment.read { _ in } }),
      (.storeNames, { _ = try await environment.storeNames() }),
      (.open, { _ = try await LMDBStore<Int>(in: environment, name: "new") }),
      // The label of a store that was opened just before.
      (
        .open,
        {
          let handle = store.handle
          try await handle.environment.writer.label(handle, named: "default", contents: "numbers", turn: nil)
        }
      ),
      (.backup, { try await environment.backup(to: folder.path("backup")) }),
    ]
    for (operation, run) in operations {
      let error = await expectStoreError(.full) { try await run() }
      #expect(error?.operation == operation && error?.outcome == .nothingChanged && error?.isRetryable == true)
    }
    try await store.setValue(2, forKey: "k")
    // Another process cannot even open it.
    await #expect(processExitsWith: .success) { [path = path as String] in
      let error = await expectStoreError(.full) { try await LMDBEnvironment(path: path) }
      #expect(error?.message.contains("table of readers") == true && error?.isRetryable == true)
    }
    mdb_txn_abort(reads[0])
    #expect(try store.value(forKey: "k") == 2)
    // A backup needs another one, for a read of LMDB's own.
    mdb_txn_abort(reads[1])
    for (_, run) in operations { try await run() }
    for read in reads.dropFirst(2) { mdb_txn_abort(read) }
    #expect(try await environment.storeNames() == ["default", "new"])
    try await environment.close()
  }

  /// They are freed when a slot is needed, not when the environment is opened the next time.
  @Test(arguments: [true, false]) func `the slots of a killed process are freed for every kind of read`(isNamed: Bool)
    async throws
  {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path)
    let store = try await LMDBStore<Int>(in: environment)
    try await store.setValue(1, forKey: "k")
    environment.handle.environment.readers.abortIdleTransactions()
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let environment = try await LMDBEnvironment(path: path)
      #expect(try FullReaderTableTests.fill(environment).isEmpty == false)
      kill(getpid(), SIGKILL)
    }
    if isNamed {
      #expect(try await environment.storeNames() == ["default"])
    } else {
      #expect(try store.value(forKey: "k") == 1)
    }
    try await environment.close()
  }
}
#endif
