#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import Larder
import LarderFiles
import Synchronization

/// Where a case of the conformance suite keeps the data of one store: a fresh temporary folder, and objects in memory.
///
/// Opening a store at the same location again must find what the first one left. The folder is removed when the case ends.
public final class ConformanceLocation: Sendable {
  /// The path of the folder; it exists and is empty at first.
  public let folder: String

  /// The access to open the store with: ``StoreAccess/readWrite``, but for the cases about reading only.
  public var access: StoreAccess { openedAccess.withLock { $0 } }

  private let openedAccess = Mutex(StoreAccess.readWrite)
  private let objects = Mutex<[String: any Sendable]>([:])

  /// Runs a closure while ``access`` is another.
  func opening<Result>(for access: StoreAccess, _ body: () async throws -> Result) async rethrows -> Result {
    openedAccess.withLock { $0 = access }
    defer { openedAccess.withLock { $0 = .readWrite } }
    return try await body()
  }

  /// Makes a location, and its folder.
  ///
  /// - Throws: What the file system throws.
  public init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    folder = url.path(percentEncoded: false)
  }

  /// A location whose folder is there already, made by another process.
  init(existingFolder: String) {
    folder = existingFolder
  }

  /// The path of a file or folder inside ``folder``.
  ///
  /// - Parameter name: Its name.
  public func path(_ name: String) -> String {
    folder + "/" + name
  }

  /// Something in memory that outlives a store: what was made at the first call, at every later one.
  ///
  /// It serves stores whose data are not in files, such as those over a simulated disk.
  ///
  /// - Parameters:
  ///   - name: Tells several things of one location apart; empty unless given.
  ///   - make: Makes it.
  public func object<Object: Sendable>(named name: String = "", make: () throws -> Object) rethrows -> Object {
    let key = "\(Object.self) \(name)"
    return try objects.withLock { objects in
      if let object = objects[key] as? Object { return object }
      let object = try make()
      objects[key] = object
      return object
    }
  }

  /// Copies what is in the folder of another location into this one's.
  ///
  /// - Returns: How many files and folders there were.
  /// - Throws: What the file system throws.
  func takeFiles(of other: ConformanceLocation) throws -> Int {
    var count = 0
    for name in try FileManager.default.contentsOfDirectory(atPath: other.folder) {
      do {
        try FileManager.default.copyItem(atPath: other.path(name), toPath: path(name))
        count += 1
      } catch {
        // What is gone since it was listed was a temporary file of a store that is open.
        if FileManager.default.fileExists(atPath: other.path(name)) { throw error }
      }
    }
    return count
  }

  /// What a file is at one moment: if nothing has changed it, it is the same later.
  struct FileState: Equatable {
    var name: String
    var attributes: FileAttributes?
    var content: Data?
  }

  /// The files in the folder and below, by path.
  ///
  /// Of a lock file only the name counts: readers may note themselves there.
  ///
  /// - Throws: What the file system throws.
  func fileStates() throws -> [FileState] {
    try FileManager.default.subpathsOfDirectory(atPath: folder).sorted().map { name in
      guard !name.contains("lock") else { return FileState(name: name) }
      let attributes = try POSIXFileSystem().attributes(at: path(name))
      return FileState(
        name: name, attributes: attributes,
        content: attributes?.kind == .file ? FileManager.default.contents(atPath: path(name)) : nil)
    }
  }

  /// Moves everything in the folder into that of another location.
  ///
  /// - Throws: What the file system throws.
  func moveFiles(to other: ConformanceLocation) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      try FileManager.default.moveItem(atPath: path(name), toPath: other.path(name))
    }
  }

  /// The paths of the files in the folder and below.
  ///
  /// - Throws: What the file system throws.
  func fileNames() throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
  }

  /// Moves a file out of sight; `false` if it is not there.
  ///
  /// - Throws: What the file system throws.
  func hide(_ name: String) throws -> Bool {
    guard FileManager.default.fileExists(atPath: path(name)) else { return false }
    try FileManager.default.moveItem(atPath: path(name), toPath: folder + ".hidden")
    return true
  }

  /// Puts a file back that was moved out of sight, unless there is another in its place.
  ///
  /// - Throws: What the file system throws.
  func unhideUnlessMadeAgain(_ name: String) throws {
    guard !FileManager.default.fileExists(atPath: path(name)) else { return }
    try FileManager.default.moveItem(atPath: folder + ".hidden", toPath: path(name))
  }

  /// How a file gets another name.
  enum LinkKind: CaseIterable {
    case symbolicLink, hardLink
  }

  /// Makes a location for each file in the folder, with nothing in it but that file under the same name.
  ///
  /// - Throws: What the file system throws.
  func locationsWithOneLink(_ kind: LinkKind) throws -> [ConformanceLocation] {
    try FileManager.default.contentsOfDirectory(atPath: folder).map { name in
      let other = try ConformanceLocation()
      switch kind {
      case .symbolicLink:
        try FileManager.default.createSymbolicLink(atPath: other.path(name), withDestinationPath: path(name))
      case .hardLink: try FileManager.default.linkItem(atPath: path(name), toPath: other.path(name))
      }
      return other
    }
  }

  /// Removes the folder and everything in it.
  ///
  /// - Throws: What the file system throws.
  public func remove() throws {
    objects.withLock { $0 = [:] }
    for path in [folder, folder + ".hidden"] where FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
  }
}
