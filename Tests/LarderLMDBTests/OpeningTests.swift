#if LMDB
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// Opening refuses damaged environments and other files with a clear error, and leaves them unchanged.
@Suite struct OpeningTests {
  /// Expects that opening a data file fails, as a file and in a folder, and that nothing changes and no file is left
  /// behind.
  private func expectRefused(
    _ bytes: [UInt8], _ code: StoreError.Code, saying words: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("folder"), withIntermediateDirectories: false)
    let files = [
      (folder.path("file.mdb"), folder.path("file.mdb")), (folder.path("folder"), folder.path("folder/data.mdb")),
    ]
    for (path, file) in files {
      try Data(bytes).write(to: URL(filePath: file))
      for createsIfMissing in [true, false] {
        let error = await expectStoreError(code, sourceLocation: sourceLocation) {
          try await LMDBEnvironment(path: path, createsIfMissing: createsIfMissing)
        }
        #expect(error?.description.contains(words) == true, "\(error as Any)", sourceLocation: sourceLocation)
        #expect(error?.outcome == .nothingChanged, sourceLocation: sourceLocation)
      }
      #expect(try Data(contentsOf: URL(filePath: file)) == Data(bytes), sourceLocation: sourceLocation)
    }
    #expect(
      try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
        == ["file.mdb", "folder", "folder/data.mdb"], sourceLocation: sourceLocation)
  }

  @Test func `files that are no data files are refused`() async throws {
    try await expectRefused(Array("some text\n".utf8), .unrecognizedFormat, saying: "not an LMDB data file")
    let text = Array(String(repeating: "a longer text\n", count: 1000).utf8)
    try await expectRefused(text, .unrecognizedFormat, saying: "not an LMDB data file")
    try await expectRefused([UInt8](repeating: 0, count: 8192), .unrecognizedFormat, saying: "magic number")
  }

  @Test func `data files that this LMDB cannot read are refused`() async throws {
    let image = try await DataFileImage.filled()
    var other = image
    for meta in [0, DataFileImage.secondMeta] {
      other.set((0xBEEF_C0DE as UInt32).byteSwapped, at: meta + DataFileImage.field(0))
      other.set((1 as UInt32).byteSwapped, at: meta + DataFileImage.field(4))
    }
    try await expectRefused(other.bytes, .unsupported, saying: "different byte order")
    other = image
    other.setInBothMetas(999 as UInt32, at: DataFileImage.field(4))
    try await expectRefused(other.bytes, .versionMismatch, saying: "version 999")
    other = image
    other.bytes.removeSubrange(0..<DataFileImage.field(0) - 12)
    try await expectRefused(other.bytes, .unsupported, saying: "32-bit")
    other = image
    other.setInBothMetas(77 as UInt32, at: DataFileImage.field(24))
    try await expectRefused(other.bytes, .corrupted, saying: "contradict")
  }

  @Test func `a file without its root pages is refused`() async throws {
    let image = try await DataFileImage.filled()
    let header = try DataFileHeader(image.bytes, store: "store")
    let folder = try TemporaryFolder()
    let path = folder.path("file.mdb")
    let size = (Int(header.roots.max() ?? 0) + 1) * DataFileImage.pageSize
    let aroundPages = stride(from: 0, through: size, by: DataFileImage.pageSize).flatMap { $0 - 1...$0 + 1 }
    let lengths = Set(Array(stride(from: 1, to: size, by: 512)) + aroundPages).filter { $0 > 0 && $0 < size }
    for length in lengths.sorted() {
      let bytes = Data(image.bytes.prefix(length))
      try bytes.write(to: URL(filePath: path))
      let error = await #expect(throws: StoreError.self, "\(length) bytes") {
        try await LMDBEnvironment(path: path, durability: .buffered, createsIfMissing: false)
      }
      #expect(error?.code == .corrupted, "\(length) bytes")
      #expect(error?.description.contains("truncated") == true, "\(length) bytes")
      #expect(try Data(contentsOf: URL(filePath: path)) == bytes, "\(length) bytes")
    }
    #expect(try folder.names == ["file.mdb"])
  }

  @Test func `a file may end before unreferenced pages`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    for count in [2, 1, 1, 50] {
      try await environment.write { transaction in
        for number in 0..<count {
          try transaction.setValue([UInt8](repeating: 1, count: 20_000), forKey: "\(number)", in: store)
        }
        // Once LMDB reuses free pages, it does not write pages that a transaction allocates and frees.
        for number in 0..<count { try transaction.removeValue(forKey: "\(number)", in: store) }
        try transaction.setValue([1], forKey: "kept", in: store)
      }
    }
    let statistics = try await environment.statistics()
    try await environment.close()
    let size = try FileManager.default.attributesOfItem(atPath: folder.path("environment/data.mdb"))[.size] as? Int ?? 0
    try #require(size < statistics.pageCount * statistics.pageSize, "LMDB wrote the pages that it freed")
    let again = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw)
    #expect(try again.keys(in: .all, limit: 10, order: .ascending) == ["kept"])
    try await again.close()
  }

  @Test func `an emptied data file is refused`() async throws {
    let folder = try TemporaryFolder()
    try Data().write(to: URL(filePath: folder.path("file.mdb")))
    for (path, file) in [("file.mdb", "file.mdb"), ("folder", "folder/data.mdb")] {
      let store = try await LMDBStore<Int>(path: folder.path(path), codec: .json())
      try await store.setValue(1, forKey: "k")
      try await store.close()
      #expect(truncate(folder.path(file), 0) == 0)
      for access in StoreAccess.allCases {
        let error = await expectStoreError(.corrupted) {
          try await LMDBEnvironment(path: folder.path(path), access: access)
        }
        #expect(error?.description.contains("empty") == true)
      }
      #expect(try Data(contentsOf: URL(filePath: folder.path(file))).isEmpty)
    }
  }

  /// The files of a process that was killed while it created an environment.
  @Test func `an interrupted creation is completed`() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("folder"), withIntermediateDirectories: false)
    try Data().write(to: URL(filePath: folder.path("folder/data.mdb")))
    let store = try await LMDBStore<Int>(path: folder.path("folder"), codec: .json())
    try await store.setValue(1, forKey: "k")
    try await store.close()
  }

  @Test func `an empty file is treated as missing`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("file.mdb")
    try Data().write(to: URL(filePath: path))
    await expectStoreError(.notFound) { try await LMDBEnvironment(path: path, createsIfMissing: false) }
    #expect(try Data(contentsOf: URL(filePath: path)).isEmpty)
    #expect(try folder.names == ["file.mdb"])
    let store = try await LMDBStore<Int>(path: path, codec: .json())
    try await store.setValue(1, forKey: "k")
    try await store.close()
    #expect(try folder.names == ["file.mdb", "file.mdb-lock"])
  }

  @Test func `missing files are not created`() async throws {
    let folder = try TemporaryFolder()
    await expectStoreError(.notFound) { try await LMDBEnvironment(path: folder.path("a"), createsIfMissing: false) }
    await expectStoreError(.notFound) { try await LMDBEnvironment(path: folder.path("a/b")) }
    await expectStoreError(.notFound) { try await LMDBEnvironment(path: "") }
    try FileManager.default.createDirectory(atPath: folder.path("empty"), withIntermediateDirectories: false)
    await expectStoreError(.notFound) { try await LMDBEnvironment(path: folder.path("empty"), createsIfMissing: false) }
    #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.path) == ["empty"])
  }

  @Test func `paths to other kinds of files are refused`() async throws {
    let folder = try TemporaryFolder()
    #expect(mkfifo(folder.path("fifo"), 0o600) == 0)
    await expectStoreError(.unrecognizedFormat) { try await LMDBEnvironment(path: folder.path("fifo")) }
    try FileManager.default.createSymbolicLink(atPath: folder.path("dangling"), withDestinationPath: "nowhere")
    let error = await expectStoreError(.invalidArgument) { try await LMDBEnvironment(path: folder.path("dangling")) }
    #expect(error?.description.contains("link") == true)
    try FileManager.default.createSymbolicLink(atPath: folder.path("circle"), withDestinationPath: "circle")
    await expectStoreError(.invalidArgument) { try await LMDBEnvironment(path: folder.path("circle")) }
    await expectStoreError(.invalidArgument) { try await LMDBEnvironment(path: folder.path("a\0b")) }
    try Data("x".utf8).write(to: URL(filePath: folder.path("file")))
    await expectStoreError(.invalidArgument) { try await LMDBEnvironment(path: folder.path("file/below")) }
    await expectStoreError(.invalidArgument) {
      try await LMDBEnvironment(path: folder.path(String(repeating: "n", count: 300)))
    }
    for name in ["fifo inside", "folder inside", "link inside"] {
      try FileManager.default.createDirectory(atPath: folder.path(name), withIntermediateDirectories: false)
    }
    #expect(mkfifo(folder.path("fifo inside/data.mdb"), 0o600) == 0)
    try FileManager.default.createDirectory(
      atPath: folder.path("folder inside/data.mdb"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link inside/data.mdb"), withDestinationPath: "../file")
    for name in ["fifo inside", "folder inside", "link inside"] {
      await expectStoreError(.unsupported) { try await LMDBEnvironment(path: folder.path(name)) }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(name)) == ["data.mdb"])
    }
    #expect(!FileManager.default.fileExists(atPath: folder.path("nowhere")))
  }

  @Test func `new files are private`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    try Data().write(to: URL(filePath: folder.path("file")))
    func permissions(_ name: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: folder.path(name))[.posixPermissions] as? Int
    }
    #expect(try permissions("environment") == 0o700)
    #expect(try permissions("environment/data.mdb") == 0o600)
    #expect(try permissions("environment/lock.mdb") == 0o600)
    try await environment.close()
  }

  @Test func `inaccessible files are not permitted`() async throws {
    let folder = try TemporaryFolder()
    for (name, folderMode, fileMode) in [("closed", 0o000, 0o600), ("readable", 0o755, 0o600), ("open", 0o755, 0o444)] {
      let environment = try await LMDBEnvironment(path: folder.path(name))
      try await environment.close()
      for file in ["data.mdb", "lock.mdb"] {
        #expect(chmod(folder.path("\(name)/\(file)"), mode_t(fileMode)) == 0)
      }
      // Root may access everything, so root switches to another user. The owner takes the permission from itself.
      if geteuid() != 0 && fileMode == 0o600 { #expect(chmod(folder.path("\(name)/data.mdb"), 0) == 0) }
      #expect(chmod(folder.path(name), mode_t(folderMode)) == 0)
    }
    #expect(chmod(folder.path, 0o555) == 0)
    await #expect(processExitsWith: .success) { [root = folder.path as String] in
      try await withoutRootPrivileges {
        for name in ["closed", "readable", "open", "new"] {
          let error = await expectStoreError(.notPermitted) { try await LMDBEnvironment(path: "\(root)/\(name)") }
          #expect(error?.outcome == .nothingChanged)
        }
      }
    }
    for name in ["", "/closed", "/readable", "/open"] { #expect(chmod(folder.path + name, 0o755) == 0) }
    #expect(try folder.names == ["closed", "open", "readable"])
  }

  /// The names of new files must be durable before anything is written.
  @Test func `a new environment whose folder cannot be synced is refused until it can be`() async throws {
    let folder = try TemporaryFolder()
    let parent = folder.path("parent")
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: false)
    if geteuid() == 0 { #expect(chown(parent, 65534, 65534) == 0) }
    // Folders can be created in it, but it cannot be opened.
    #expect(chmod(folder.path, 0o755) == 0 && chmod(parent, 0o300) == 0)
    await #expect(processExitsWith: .success) { [parent = parent as String] in
      try await withoutRootPrivileges {
        let path = parent + "/environment"
        // The second time, the data file is there.
        for _ in 0..<2 {
          let error = await expectStoreError(.notPermitted) { try await LMDBEnvironment(path: path) }
          #expect(error?.operation == .open && error?.message.contains("cannot be synced") == true)
          #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["data.mdb"])
        }
        #expect(chmod(parent, 0o700) == 0)
        let store = try await LMDBStore<Int>(path: path)
        try await store.setValue(1, forKey: "k")
        try await store.close()
        // From then on, the names are known to be durable.
        #expect(chmod(parent, 0o300) == 0)
        let again = try await LMDBStore<Int>(path: path)
        #expect(try again.value(forKey: "k") == 1)
        try await again.close()
      }
    }
    #expect(chmod(parent, 0o700) == 0)
  }

  /// A deployment switches a symbolic link from one folder to the next.
  @Test(arguments: [false, true]) func `a link that is switched during opening never mixes two environments`(
    isExamined: Bool
  ) async throws {
    let folder = try TemporaryFolder()
    let link = folder.path("current")
    let targets = ["first", "second"]
    for name in targets {
      let store = try await LMDBStore(path: folder.path(name), codec: .raw)
      try await store.setValue(Array(name.utf8), forKey: "name")
      try await store.close()
    }
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: targets[0])
    let isDone = Flag()
    async let switching: Void = Threads.run(1) { [new = folder.path("new")] _ in
      var number = 0
      while !isDone.isSet {
        number += 1
        guard symlink(targets[number % 2], new) == 0, rename(new, link) == 0 else { throw LMDBError(code: errno) }
      }
    }
    var (conflicts, opened) = (0, 0)
    while conflicts < 10 || opened < 1 {
      do {
        let store: any DataStore<[UInt8]> =
          isExamined ? try await Examination(link).store : try await LMDBStore(path: link, codec: .raw)
        let value = try await store.value(forKey: "name")
        #expect(value.map { targets.contains(String(decoding: $0, as: UTF8.self)) } == true)
        opened += 1
        try await store.close()
      } catch let error as StoreError {
        try #require(error.code == .conflict && error.isRetryable && error.operation == .open, "\(error)")
        conflicts += 1
      }
    }
    isDone.set()
    try await switching
    for name in targets {
      let store = try await LMDBStore(path: folder.path(name), codec: .raw)
      #expect(try store.value(forKey: "name") == Array(name.utf8))
      try await store.close()
    }
  }
}
#endif
