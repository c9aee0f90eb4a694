#if LMDB
import CLMDB
import Larder
import LarderCBOR
import LarderFiles
import TestSupport
import Testing

@testable import LarderLMDB

/// Protection against opening a store under the name of another: by type within a process, by label in every process.
@Suite struct ContentsTests {
  private struct Note: Codable, Equatable {
    var text: String
  }

  private struct Folder: Codable, Equatable {
    var text: String
  }

  // MARK: Types in one process

  @Test func `a store cannot be open with two types`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path)
    let notes = try await LMDBStore<Note>(in: environment)
    try await notes.setValue(Note(text: "a"), forKey: "k")
    let error = await expectStoreError(.invalidArgument) { try await LMDBStore<Folder>(in: environment) }
    #expect(error?.message.contains("of the type Note") == true)
    #expect(error?.message.contains("name of its own") == true)
    // Also by the path, because the environment is the same.
    await expectStoreError(.invalidArgument) { try await LMDBStore<Folder>(path: path) }
    await expectStoreError(.invalidArgument) { try await LMDBStore<Note?>(in: environment) }

    let folders = try await LMDBStore<Folder>(in: environment, name: "folders")
    try await folders.setValue(Folder(text: "b"), forKey: "k")
    #expect(try notes.value(forKey: "k") == Note(text: "a"))
    try await environment.close()
  }

  @Test func `the type is free again after the last store of it`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let first = try await LMDBStore<Note>(in: environment)
    var second: LMDBStore<Note>? = try await LMDBStore<Note>(in: environment)
    try await first.close()
    try await first.close()
    await expectStoreError(.invalidArgument) { try await LMDBStore<Folder>(in: environment) }
    #expect(try second?.count(in: .all) == 0)
    second = nil
    let folders = try await LMDBStore<Folder>(in: environment)
    await expectStoreError(.invalidArgument) { try await LMDBStore<Note>(in: environment) }
    try await folders.close()
    try await environment.close()
  }

  @Test func `encoded forms may be beside any type`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path)
    let notes = try await LMDBStore<Note>(in: environment, codec: .json())
    try await notes.setValue(Note(text: "a"), forKey: "k")
    let text = try await LMDBStore<JSONText>(in: environment, codec: .jsonText)
    #expect(try text.value(forKey: "k") == JSONText(#"{"text":"a"}"#.utf8))
    try await notes.close()
    let folders = try await LMDBStore<Folder>(in: environment, codec: .json())
    #expect(try folders.value(forKey: "k") == Folder(text: "a"))
    try await environment.close()
  }

  @Test func `a refused type records no label`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let notes = try await LMDBStore<Note>(in: environment)
    await expectStoreError(.invalidArgument) { try await LMDBStore<Folder>(in: environment, contents: "folders") }
    await expectStoreError(.versionMismatch) {
      try await LMDBStore<Note>(in: environment, codec: .json(), contents: "folders")
    }
    let labelled = try await LMDBStore<Note>(in: environment, contents: "notes")
    #expect(try labelled.count(in: .all) == 0)
    #expect(try notes.count(in: .all) == 0)
    try await environment.close()
  }

  // MARK: Labels in the file

  private func record(_ path: String, _ name: String = "default") async throws -> String? {
    let store = try await LMDBEnvironment(path: path)
    let bytes = try store.handle.read(for: .read) { transaction in
      var catalog: MDB_dbi = 0
      try LMDBError.check(mdb_dbi_open(transaction, StoreCatalog.name, 0, &catalog))
      return try RawDatabase(transaction: transaction, identifier: catalog).value(forKey: StoreKey(name))
        .map { String(decoding: $0, as: UTF8.self) }
    }
    try await store.close()
    return bytes
  }

  @Test func `a label is recorded once and checked from then on`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let unlabelled = try await LMDBStore<Note>(path: path)
    try await unlabelled.setValue(Note(text: "a"), forKey: "k")
    try await unlabelled.close()
    #expect(try await record(path) == #"{"codec":"cbor","format":1}"#)

    // A reader records nothing.
    try await LMDBStore<Note>(path: path, contents: "folders", access: .readOnly).close()
    #expect(try await record(path) == #"{"codec":"cbor","format":1}"#)

    for _ in 0..<2 { try await LMDBStore<Note>(path: path, contents: "notes").close() }
    #expect(try await record(path) == #"{"codec":"cbor","format":1,"contents":"notes"}"#)
    for access in [StoreAccess.readWrite, .readOnly] {
      let error = await expectStoreError(.versionMismatch) {
        try await LMDBStore<Folder>(path: path, contents: "folders", access: access)
      }
      #expect(error?.message.contains(#""notes", not "folders""#) == true)
    }
    // Without a label, everything is as before.
    let store = try await LMDBStore<Note>(path: path)
    #expect(try store.value(forKey: "k") == Note(text: "a"))
    try await store.close()
  }

  @Test func `a new store has its label`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let contents = "no\"tes é"
    try await LMDBStore<Note>(path: path, name: "n", codec: .json(), contents: contents).close()
    #expect(try await record(path, "n") == #"{"codec":"json","format":1,"contents":"no\"tes é"}"#)
    try await LMDBStore<Note>(path: path, name: "n", codec: .json(), contents: contents).close()
    await expectStoreError(.versionMismatch) {
      try await LMDBStore<Note>(path: path, name: "n", codec: .json(), contents: "no\"tes e\u{301}")
    }
  }

  @Test(arguments: [0, 512]) func `invalid labels are refused`(_ count: Int) async throws {
    let folder = try TemporaryFolder()
    await expectStoreError(.invalidArgument) {
      try await LMDBStore<Note>(path: folder.path("a"), contents: String(repeating: "a", count: count))
    }
  }

  @Test func `fields of newer versions stay`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path)
    try await LMDBStore<Note>(in: environment).close()
    try await environment.write { transaction in
      var catalog: MDB_dbi = 0
      try LMDBError.check(mdb_dbi_open(transaction.pointer, StoreCatalog.name, 0, &catalog))
      let record = Array(#"{"codec":"cbor","extra":{"a":[1]},"format":1} "#.utf8)
      try RawDatabase(transaction: transaction.pointer, identifier: catalog).setValue(record, forKey: "default")
    }
    try await LMDBStore<Note>(in: environment, contents: "notes").close()
    try await environment.close()
    #expect(try await record(path) == #"{"codec":"cbor","extra":{"a":[1]},"format":1,"contents":"notes"} "#)
    await expectStoreError(.versionMismatch) { try await LMDBStore<Note>(path: path, contents: "folders") }
  }
}
#endif
