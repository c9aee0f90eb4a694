import Foundation

/// The defaults of the program's arguments.
enum Defaults {
  /// The minimum number of entries in an example folder.
  private static let enoughEntries = 10_000

  /// Returns a large folder, which exists on every machine with Swift.
  ///
  /// This is the folder of the toolchain if it is large; otherwise one of the system's folders, or the largest of all.
  static func folder() -> String? {
    var largest: (path: String, count: Int)?
    for path in candidates() {
      guard let walk = try? FolderWalk(root: path) else { continue }
      let count = walk.prefix(enoughEntries).reduce(0) { count, _ in count + 1 }
      if count > largest?.count ?? 0 { largest = (path, count) }
      if count == enoughEntries { break }
    }
    return largest?.path
  }

  private static func candidates() -> [String] {
    var paths: [String] = []
    let searchPath = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for folder in searchPath.split(separator: ":") {
      let swift = URL(filePath: String(folder), directoryHint: .isDirectory).appending(path: "swift")
      guard FileManager.default.isExecutableFile(atPath: swift.path) else { continue }
      // …/usr/bin/swift, after resolving links
      paths.append(swift.resolvingSymlinksInPath().deletingLastPathComponent().deletingLastPathComponent().path)
      break
    }
    #if canImport(Darwin)
    // The swift on the PATH is only a stub for the selected tools.
    paths.insert("/Library/Developer/CommandLineTools/usr", at: 0)
    #endif
    return paths + ["/usr/share", "/usr/lib", "/usr"]
  }

  /// Returns the location of the catalog of a folder: in the user's cache folder, with a path that mirrors the
  /// folder's.
  static func storeURL(forFolder folder: String) throws -> String {
    let caches = try FileManager.default.url(
      for: .cachesDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
    let place = caches.appending(path: "larder/FileCatalog" + folder, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    // With the name of the store after it, because the folder's own path may have a number sign.
    return "lmdb:\(place.appending(path: "catalog.lmdb").path)#records"
  }
}
