#if LMDB
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// All users of a file in a process share one environment, whatever path they use.
@Suite struct SharingTests {
  @Test func `every path to a file gives the same environment`() async throws {
    let folder = try TemporaryFolder()
    let files = FileManager.default
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let store = try await LMDBStore<Int>(in: environment, codec: .json())
    try files.createSymbolicLink(atPath: folder.path("link"), withDestinationPath: "environment")
    try files.createSymbolicLink(atPath: folder.path("link to link"), withDestinationPath: folder.path("link"))
    try files.createSymbolicLink(atPath: folder.path("file link"), withDestinationPath: "environment/data.mdb")
    try files.linkItem(atPath: folder.path("environment/data.mdb"), toPath: folder.path("hard.mdb"))
    let paths = [
      "environment", "environment/", "./environment/../environment", "link", "link to link", "environment/data.mdb",
      "file link", "hard.mdb",
    ]
    for (number, path) in paths.enumerated() {
      let other = try await LMDBStore<Int>(path: folder.path(path), codec: .json())
      #expect(other.handle.environment === store.handle.environment, "\(path)")
      try await other.setValue(number, forKey: "k")
      #expect(try store.value(forKey: "k") == number)
      try await other.close()
    }
    try await environment.close()
    // A file with another name would have another lock.
    for path in ["hard.mdb", "environment"] {
      let error = await expectStoreError(.unsupported) { try await LMDBEnvironment(path: folder.path(path)) }
      #expect(error?.description.contains("hard link") == true)
    }
    try files.removeItem(atPath: folder.path("hard.mdb"))
    let again = try await LMDBStore<Int>(path: folder.path("link"), codec: .json())
    #expect(try again.value(forKey: "k") == paths.count - 1)
    try await again.close()
  }

  @Test func `environments at other paths are separate`() async throws {
    let folder = try TemporaryFolder()
    let first = try await LMDBEnvironment(path: folder.path("first"))
    let second = try await LMDBEnvironment(path: folder.path("second"))
    #expect(first.handle.environment !== second.handle.environment)
    let store = try await LMDBStore<Int>(in: second, codec: .json())
    try await store.setValue(1, forKey: "k")
    let error = expectStoreError(.invalidArgument) { try first.read { try $0.value(forKey: "k", in: store) } }
    #expect(error?.description.contains("different environment") == true)
    await expectStoreError(.invalidArgument) { try await first.write { try $0.setValue(2, forKey: "k", in: store) } }
    await expectStoreError(.invalidArgument) { try await first.write { try $0.apply([.remove("k")], to: store) } }
    expectStoreError(.invalidArgument) {
      try first.read { transaction in try transaction.withCursor(of: store) { cursor in try cursor.moveToFirst() } }
    }
    expectStoreError(.invalidArgument) { try first.read { try $0.withBytes(forKey: "k", in: store) { _ in } } }
    #expect(try store.value(forKey: "k") == 1)
    try await first.close()
    try await second.close()
  }

  @Test func `another durability is refused while it is open`() async throws {
    let folder = try TemporaryFolder()
    let synced = try await LMDBEnvironment(path: folder.path("environment"))
    let error = await expectStoreError(.locked) {
      try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    }
    #expect(error?.description.contains("synced") == true)
    try await synced.close()
    let buffered = try await LMDBStore<Int>(
      path: folder.path("environment"), codec: .json(), durability: .buffered)
    #expect(buffered.information.durability == Durability(.buffered))
    try await buffered.setValue(1, forKey: "k")
    try await buffered.synchronize()
    try await buffered.close()
  }

  @Test func `closing one leaves the others`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let first = try await LMDBEnvironment(path: path)
    let second = try await LMDBEnvironment(path: path)
    let ofFirst = try await LMDBStore<Int>(in: first, codec: .json())
    let sibling = try await LMDBStore<Int>(in: first, codec: .json())
    let ofSecond = try await LMDBStore<Int>(in: second, codec: .json())
    try await sibling.close()
    expectStoreError(.closed) { try sibling.value(forKey: "k") }
    await expectStoreError(.closed) { try await first.write { try $0.setValue(1, forKey: "k", in: sibling) } }
    try await ofFirst.setValue(1, forKey: "k")
    try await first.close()
    try await first.close()
    expectStoreError(.closed) { try ofFirst.value(forKey: "k") }
    expectStoreError(.closed) { try first.read { _ in } }
    await expectStoreError(.closed) { try await first.write { _ in } }
    await expectStoreError(.closed) { try await first.statistics() }
    await expectStoreError(.closed) { try await first.storeNames() }
    await expectStoreError(.closed) { try await first.synchronize() }
    await expectStoreError(.closed) { try await first.backup(to: folder.path("backup")) }
    await expectStoreError(.closed) { try await LMDBStore<Int>(in: first, codec: .json()) }
    #expect(try ofSecond.value(forKey: "k") == 1)
    try await ofSecond.setValue(2, forKey: "k")
    try await second.close()
    let third = try await LMDBStore<Int>(path: path, codec: .json())
    #expect(try third.value(forKey: "k") == 2)
    try await third.close()
  }

  @Test func `closing waits for a reader`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let other = try await LMDBEnvironment(path: folder.path("environment"))
    let store = try await LMDBStore<Int>(in: environment, codec: .json())
    try await store.setValue(1, forKey: "k")
    let reader = HeldRead()
    let reading = Task {
      try await reader.run {
        try environment.read { transaction in
          reader.hold()
          reader.note("read")
          _ = try transaction.value(forKey: "k", in: store)
        }
      }
    }
    await reader.isHeld()
    let closing = Task {
      try await environment.close()
      reader.note("closed")
    }
    // Reads until closing has started. Environments opened elsewhere stay open.
    while (try? environment.read { _ in }) != nil { await Task.yield() }
    try other.read { _ in }
    #expect(reader.notes == [])
    reader.release()
    do {
      try await reading.value
      Issue.record("the read continued in a closed store")
    } catch let error as StoreError {
      #expect(error.code == .closed)
    }
    try await closing.value
    #expect(reader.notes == ["read", "closed"])
    try await other.close()
  }

  @Test func `a released store can be opened again`() async throws {
    let folder = try TemporaryFolder()
    for round in 0..<5 {
      let store = try await LMDBStore<Int>(path: folder.path("environment"), codec: .json())
      #expect(try store.count(in: .all) == round)
      try await store.setValue(round, forKey: "\(round)")
    }
    // Releasing the last reference has closed it.
    let other = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    try await other.close()
  }

  @Test func `a store retains its environment`() async throws {
    let folder = try TemporaryFolder()
    func open() async throws -> LMDBStore<Int> {
      try await LMDBStore(in: try await LMDBEnvironment(path: folder.path("environment")), codec: .json())
    }
    let store = try await open()
    try await store.setValue(1, forKey: "k")
    #expect(try store.value(forKey: "k") == 1)
    try await store.close()
  }

  @Test func `another codec is refused by name`() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw)
    for isOpen in [true, false] {
      for createsIfMissing in [true, false] {
        let error = await expectStoreError(.versionMismatch) {
          try await LMDBStore<Int>(
            path: folder.path("environment"), codec: .json(), createsIfMissing: createsIfMissing)
        }
        #expect(error?.description.contains("raw") == true && error?.description.contains("json") == true)
      }
      if isOpen { try await store.close() }
    }
  }

  @Test func `invalid store names are refused`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    for name in ["", "larder", "a\0b", String(repeating: "n", count: 512)] {
      await expectStoreError(.invalidArgument) {
        try await LMDBStore<Int>(in: environment, name: name, codec: .json())
      }
    }
    let names = ["é", "e\u{301}", "#", "a b", String(repeating: "n", count: 511)]
    for (number, name) in names.enumerated() {
      let store = try await LMDBStore<Int>(in: environment, name: name, codec: .json())
      try await store.setValue(number, forKey: "k")
    }
    for (number, name) in names.enumerated() {
      #expect(try await LMDBStore<Int>(in: environment, name: name, codec: .json()).value(forKey: "k") == number)
    }
    #expect(try await Set(environment.storeNames().map { Array($0.utf8) }) == Set(names.map { Array($0.utf8) }))
    await expectStoreError(.notFound) {
      try await LMDBStore<Int>(in: environment, name: "missing", codec: .json(), createsIfMissing: false)
    }
    try await environment.close()
  }

  @Test func `child processes do not inherit the files`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    var status = stat()
    #expect(stat(folder.path("environment/data.mdb"), &status) == 0)
    // Counts the descriptors of this process for the data file.
    var count = 0
    for descriptor in 0..<min(getdtablesize(), 1 << 20) {
      var other = stat()
      guard fstat(descriptor, &other) == 0, other.st_ino == status.st_ino, other.st_dev == status.st_dev else {
        continue
      }
      #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
      count += 1
    }
    #expect(count > 0)
    try await environment.close()
  }

  @Test func `many tasks open and close concurrently`() async throws {
    let folder = try TemporaryFolder()
    let rounds = 10
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for round in 0..<rounds {
            let store = try await LMDBStore<Int>(
              path: folder.path("environment"), name: "\(task % 3)", codec: .json(), durability: .buffered)
            try await store.update("count") { $0 = ($0 ?? 0) + 1 }
            if round.isMultiple(of: 2) { try await store.close() }
          }
        }
      }
      try await group.waitForAll()
    }
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    var sum = 0
    for name in try await environment.storeNames() {
      sum += try await LMDBStore<Int>(in: environment, name: name, codec: .json()).value(forKey: "count") ?? 0
    }
    #expect(sum == 8 * rounds)
    try await environment.close()
  }
}
#endif
