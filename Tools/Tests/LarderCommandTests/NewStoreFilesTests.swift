import Foundation
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// The removal of the files of a new store to which a verb wrote nothing.
@Suite struct NewStoreFilesTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func createStore(_ kind: StoreKind) async throws {
    #expect(try await Tool.larder("set", kind.url(in: folder), "k", "1") == .done())
  }

  @Test(arguments: StoreKind.allCases) func `all files of a new store are removed`(kind: StoreKind) async throws {
    let files = try NewStoreFiles(of: kind.url(in: folder))
    try await createStore(kind)
    #expect(try folder.names() != [])
    files.remove()
    #expect(try folder.names() == [])
    // Nothing is left to remove.
    files.remove()
  }

  @Test func `files of others in a new folder stay`() async throws {
    let files = try NewStoreFiles(of: StoreKind.lmdb.url(in: folder))
    try await createStore(.lmdb)
    let path = folder.file(StoreKind.lmdb.fileName())
    try Data("mine".utf8).write(to: URL(filePath: "\(path)/notes"))
    files.remove()
    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["notes"])
  }

  @Test func `a folder that was there stays`() async throws {
    let path = folder.file(StoreKind.lmdb.fileName())
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let files = try NewStoreFiles(of: StoreKind.lmdb.url(in: folder))
    try await createStore(.lmdb)
    files.remove()
    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [])
  }

  @Test(arguments: StoreKind.allCases) func `a store that was there stays`(kind: StoreKind) async throws {
    try await createStore(kind)
    try NewStoreFiles(of: kind.url(in: folder)).remove()
    #expect(try await Tool.larder("get", kind.url(in: folder), "k") == .done("1\n"))
  }
}
