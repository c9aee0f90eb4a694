import Larder
#if Compression
import Dispatch
import LarderFiles

/// A file system that holds new files at a point until a test releases them, so the test can examine a running
/// compaction.
struct HeldFileSystem: StoreFileSystem {
  let base: any StoreFileSystem
  let hold: Hold

  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
    let file = try base.open(path, mode)
    return mode == .createNew ? HeldFile(base: file, hold: hold) : file
  }

  func rename(_ path: String, to newPath: String) throws(FileError) {
    try base.rename(path, to: newPath)
  }

  func removeFile(at path: String) throws(FileError) {
    try base.removeFile(at: path)
  }

  func createDirectory(at path: String) throws(FileError) {
    try base.createDirectory(at: path)
  }

  func synchronizeDirectory(at path: String) throws(FileError) {
    try base.synchronizeDirectory(at: path)
  }

  func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try base.contentsOfDirectory(at: path)
  }

  func attributes(at path: String) throws(FileError) -> FileAttributes? {
    try base.attributes(at: path)
  }

  func isMountPoint(at path: String) throws(FileError) -> Bool { try base.isMountPoint(at: path) }

  func canonicalPath(of path: String) throws(FileError) -> String {
    try base.canonicalPath(of: path)
  }
}

/// A file of a ``HeldFileSystem``.
final class HeldFile: OpenStoreFile {
  private let base: any OpenStoreFile
  private let hold: Hold

  init(base: any OpenStoreFile, hold: Hold) {
    self.base = base
    self.hold = hold
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    hold.pass(.writing)
    return try base.write(bytes, at: offset)
  }

  func synchronize() throws(FileError) {
    hold.pass(.synchronizing)
    try base.synchronize()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try base.read(into: buffer, at: offset)
  }

  func truncate(to size: Int64) throws(FileError) {
    try base.truncate(to: size)
  }

  func attributes() throws(FileError) -> FileAttributes {
    try base.attributes()
  }

  func setPermissions(_ permissions: UInt32) throws(FileError) {
    try base.setPermissions(permissions)
  }

  func setOwner(_ owner: FileAttributes.Owner) throws(FileError) {
    try base.setOwner(owner)
  }

  func setModificationTime(_ time: Int64) throws(FileError) {
    try base.setModificationTime(time)
  }

  func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool {
    try base.lock(kind)
  }

  func close() throws(FileError) {
    try base.close()
  }
}

/// A point where a thread waits, before a file operation, until it is released.
final class Hold: Sendable {
  /// The next operation of a thread.
  enum Point: CaseIterable {
    case writing, synchronizing
  }

  private struct State {
    var point: Point?
    var hasTimedOut = false
  }

  private let state = Locked(State())
  private let release = DispatchSemaphore(value: 0)
  private let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)

  /// A Boolean value that indicates whether a thread continued without a release.
  ///
  /// The test then fails instead of hanging.
  var hasTimedOut: Bool { state.withLock { $0.hasTimedOut } }

  /// Holds the next thread that arrives at a point.
  func begin(at point: Point) {
    state.withLock { $0.point = point }
  }

  /// Waits until a thread is held, or no thread can arrive any more.
  func waitForArrival() async {
    for await _ in arrivals { return }
  }

  /// Records that no thread can arrive any more.
  func finish() {
    arrival.finish()
  }

  /// Releases the thread.
  func end() {
    release.signal()
  }

  /// Waits if threads are held at this point.
  func pass(_ point: Point) {
    let isHeld = state.withLock { state in
      guard state.point == point else { return false }
      state.point = nil
      return true
    }
    guard isHeld else { return }
    arrival.yield()
    guard release.wait(timeout: .now() + 300) == .timedOut else { return }
    state.withLock { $0.hasTimedOut = true }
  }
}
#endif
