import Foundation
public import Larder
import LarderFiles

/// The place for the data of one store in a conformance case: a fresh temporary folder, and objects in memory.
///
/// A store that is reopened at the same location must find the data of the first one. The folder is removed when the
/// case ends.
public final class ConformanceLocation: Sendable {
  /// The path of the folder, which exists and is initially empty.
  public let folder: String

  /// The access to open the store with, which is `StoreAccess.readWrite` except in the cases about read-only access.
  public var access: StoreAccess { openedAccess.withLock { $0 } }

  /// The codec of the case, or `nil` for the usual one of the suite.
  var codec: (any Codec<SampleValue?>)? {
    get { codecOfCase.withLock { $0 } }
    set { codecOfCase.withLock { $0 = newValue } }
  }

  private let codecOfCase = Locked<(any Codec<SampleValue?>)?>(nil)
  private let openedAccess = Locked(StoreAccess.readWrite)
  private let objects = Locked<[String: any Sendable]>([:])

  /// Runs a closure with another ``access``.
  func opening<Result>(for access: StoreAccess, _ body: () async throws -> Result) async rethrows -> Result {
    openedAccess.withLock { $0 = access }
    defer { openedAccess.withLock { $0 = .readWrite } }
    return try await body()
  }

  /// Creates a location and its folder.
  ///
  /// - Throws: Any error from the file system.
  public init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "larder-\(UInt64.random(in: .min ... .max))")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    folder = url.path(percentEncoded: false)
  }

  /// Creates a location with a folder that another process has created.
  init(existingFolder: String) {
    folder = existingFolder
  }

  /// Returns the path of a file or folder inside ``folder``.
  ///
  /// ```swift
  /// let suite = ConformanceSuite(named: "SQLiteStore") { location in
  ///   try await SQLiteStore<SampleValue?>(path: location.path("store.sqlite"), access: location.access)
  /// }
  /// ```
  ///
  /// - Parameter name: The name of the file or folder.
  public func path(_ name: String) -> String {
    folder + "/" + name
  }

  /// Returns an object in memory that outlives the store; the first call creates it and later calls return the same
  /// object.
  ///
  /// Use it for stores whose data is not in files, such as stores over a simulated disk.
  ///
  /// ```swift
  /// let suite = ConformanceSuite(named: "MemoryStore", lacking: .readOnlyAccess) { location in
  ///   location.object { MemoryStore<SampleValue?>() }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: A name that distinguishes several objects of one location. Defaults to an empty string.
  ///   - make: A closure that creates the object.
  /// - Throws: Any error from `make`.
  public func object<Object: Sendable>(named name: String = "", make: () throws -> Object) rethrows -> Object {
    let key = "\(Object.self) \(name)"
    return try objects.withLock { objects in
      if let object = objects[key] as? Object { return object }
      let object = try make()
      objects[key] = object
      return object
    }
  }

  /// Copies the contents of another location's folder into this folder.
  ///
  /// - Returns: The number of files and folders that were copied.
  /// - Throws: Any error from the file system.
  func takeFiles(of other: ConformanceLocation) throws -> Int {
    var count = 0
    for name in try other.topLevelNames() {
      do {
        try FileManager.default.copyItem(atPath: other.path(name), toPath: path(name))
        count += 1
      } catch {
        // A file that has disappeared since it was listed was a temporary file of an open store.
        if FileManager.default.fileExists(atPath: other.path(name)) { throw error }
      }
    }
    return count
  }

  /// The state of a file at one moment; two states are equal if the file has not changed.
  struct FileState: Equatable {
    var name: String
    var attributes: FileAttributes?
    var content: Data?
  }

  /// Returns the states of all files in the folder and its subfolders, ordered by path.
  ///
  /// Only the name of a lock file is included, because readers may write to it.
  ///
  /// - Throws: Any error from the file system.
  func fileStates() throws -> [FileState] {
    try FileManager.default.subpathsOfDirectory(atPath: folder).sorted().map { name in
      guard !name.contains("lock") else { return FileState(name: name) }
      let attributes = try POSIXFileSystem().attributes(at: path(name))
      return FileState(
        name: name, attributes: attributes,
        content: attributes?.kind == .file ? FileManager.default.contents(atPath: path(name)) : nil)
    }
  }

  /// Moves the contents of the folder into the folder of another location.
  ///
  /// - Throws: Any error from the file system.
  func moveFiles(to other: ConformanceLocation) throws {
    for name in try topLevelNames() {
      try FileManager.default.moveItem(atPath: path(name), toPath: other.path(name))
    }
  }

  /// Returns the paths of all files in the folder and its subfolders.
  ///
  /// - Throws: Any error from the file system.
  func fileNames() throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
  }

  /// Returns the names of all files and folders in the folder.
  ///
  /// - Throws: Any error from the file system.
  func topLevelNames() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder)
  }

  /// Moves a file out of the folder.
  ///
  /// - Returns: A Boolean value that indicates whether the file existed.
  /// - Throws: Any error from the file system.
  func hide(_ name: String) throws -> Bool {
    guard FileManager.default.fileExists(atPath: path(name)) else { return false }
    try FileManager.default.moveItem(atPath: path(name), toPath: folder + ".hidden")
    return true
  }

  /// Moves a hidden file back into the folder, unless the store has created another file with its name.
  ///
  /// - Throws: Any error from the file system.
  func restoreUnlessReplaced(_ name: String) throws {
    guard !FileManager.default.fileExists(atPath: path(name)) else { return }
    try FileManager.default.moveItem(atPath: folder + ".hidden", toPath: path(name))
  }

  /// The kinds of links to a file.
  enum LinkKind: CaseIterable {
    case symbolicLink, hardLink
  }

  /// Creates a link to a file or folder of another location, under the same name.
  ///
  /// - Throws: Any error from the file system.
  func link(_ name: String, to other: ConformanceLocation, _ kind: LinkKind) throws {
    switch kind {
    case .symbolicLink:
      try FileManager.default.createSymbolicLink(atPath: path(name), withDestinationPath: other.path(name))
    case .hardLink: try FileManager.default.linkItem(atPath: other.path(name), toPath: path(name))
    }
  }

  /// Removes the folder with its contents, and the objects in memory.
  ///
  /// - Throws: Any error from the file system.
  public func remove() throws {
    objects.withLock { $0 = [:] }
    for path in [folder, folder + ".hidden"] where FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
  }
}
