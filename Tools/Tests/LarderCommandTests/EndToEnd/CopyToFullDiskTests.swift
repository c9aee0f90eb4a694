import Foundation
import Testing

/// Copies to a disk that has no room for the entries.
@Suite(.enabled(if: SmallDisk.obstacle == nil, "\(SmallDisk.obstacle ?? "")"))
struct CopyToFullDiskTests {
  private let folder: TemporaryFolder
  private let disk: SmallDisk

  init() throws {
    folder = try TemporaryFolder()
    disk = try SmallDisk()
  }

  /// Creates a store of 400 KB and returns its URL.
  private func makeSource() async throws -> String {
    let source = StoreKind.json.url("source", in: folder)
    let lines = (0..<200).map { number in
      // Digits at random, so that no store compresses them.
      let text = (0..<110).map { _ in String(UInt64.random(in: .min ... .max)) }.joined()
      return "{\"key\":\"\(1000 + number)\",\"value\":\"\(text)\"}\n"
    }
    #expect(try await Tool.larder("import", source, input: lines.joined()).status == 0)
    return source
  }

  private func url(_ kind: StoreKind) -> String { "\(kind.rawValue):\(disk.path)/\(kind.fileName("copy"))" }

  @Test(arguments: StoreKind.allCases, [0, 4, 16, 64, 128])
  func `a copy that writes nothing leaves no store`(to kind: StoreKind, kilobytes: Int) async throws {
    let source = try await makeSource()
    try disk.fill(leaving: kilobytes << 10)
    #expect(try await Tool.larder("copy", source, url(kind)).failed(74, "Free some space and try again."))
    #expect(try disk.names() == ["ballast"])
    try disk.empty()
    #expect(try await Tool.larder("copy", source, url(kind)).status == 0)
    #expect(try await Tool.larder("export", url(kind)) == Tool.larder("export", source))
  }

  @Test(arguments: StoreKind.allCases) func `batches that were written stay`(to kind: StoreKind) async throws {
    let source = try await makeSource()
    try disk.fill(leaving: 128 << 10)
    let full = try await Tool.larder("copy", source, url(kind), "--batch", "5")
    #expect(full.failed(74, "Free some space and try again."), "\(full)")
    try disk.empty()
    let run = try await Tool.larder("copy", source, url(kind))
    #expect(run.status == 0 && !run.errors.hasPrefix("copied 200 entries"), "\(run.errors)")
    #expect(try await Tool.larder("export", url(kind)) == Tool.larder("export", source))
  }

  /// The store was there before the copy.
  @Test(arguments: StoreKind.allCases) func `an empty store of others stays`(at kind: StoreKind) async throws {
    let source = try await makeSource()
    // With the codec of the source.
    let empty = "json:\(folder.file("empty"))"
    #expect(try await Tool.larder("import", empty).status == 0)
    #expect(try await Tool.larder("copy", empty, url(kind)).status == 0)
    try disk.fill(leaving: 128 << 10)
    #expect(try await Tool.larder("copy", source, url(kind)).failed(74, "Free some space and try again."))
    #expect(try await Tool.larder("count", url(kind)) == .done("0\n"))
  }
}
