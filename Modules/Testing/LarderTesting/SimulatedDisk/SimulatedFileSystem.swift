public import LarderFiles
import Synchronization

/// A file system in memory that fails and loses power as real ones do, at any operation, by a seed.
///
/// Give it to a store in the place of the real one, run the store, cut the power, and see what the store makes of it:
///
/// ```swift
/// let disk = SimulatedFileSystem(seed: seed)
/// disk.schedule(.powerLoss, atOperation: 17)
/// try? await write(to: JSONFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk))
/// disk.restart()
/// let store = try await JSONFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk)
/// ```
///
/// What power loss leaves: of each write that was not synchronized, all, nothing, some sectors of 512 bytes, or garbage in
/// some sectors, with the file as long as before or as after; of the creations, renames and removals in a directory that
/// was not synchronized, any, each by itself. So a file that was synchronized is gone if its name was not, and a file
/// that was replaced stands again where the rename is undone. What was synchronized stays, also what shares a sector with
/// what was not. A rename from one directory into another is done in both or in none, and durable once one of them was
/// synchronized. Permissions, owners and times are durable at once.
///
/// It starts with an empty directory "/". There are no symbolic and no hard links. All of it may be used from several
/// threads at once.
public final class SimulatedFileSystem: FileSystem {
  private let disk: Mutex<SimulatedDisk>

  /// Makes an empty file system.
  ///
  /// - Parameter seed: Decides everything that is left to chance.
  public init(seed: UInt64) {
    disk = Mutex(SimulatedDisk(seed: seed))
  }

  // MARK: What goes wrong

  /// Lets an operation go wrong.
  ///
  /// - Parameters:
  ///   - fault: What happens.
  ///   - number: At which operation, counted from the first of all as 1; see ``operationCount``.
  public func schedule(_ fault: SimulatedFault, atOperation number: Int) {
    withDisk { $0.schedule(fault, atOperation: number) }
  }

  /// Takes back what was scheduled.
  public func clearFaults() {
    withDisk { $0.clearFaults() }
  }

  /// How many operations there have been; closing a file does not count.
  public var operationCount: Int {
    withDisk { $0.operationCount }
  }

  /// Whether the power is on.
  public var hasPower: Bool {
    withDisk { $0.hasPower }
  }

  /// How many bytes all files may have together, or `nil`, as at first, for no limit.
  ///
  /// A write beyond that writes what fits, or fails with `ENOSPC`.
  public var capacity: Int? {
    get { withDisk { $0.capacity } }
    set { withDisk { $0.capacity = newValue } }
  }

  /// Ends every process, as SIGKILL does: open files and locks are gone, what was written is still there.
  public func killProcess() {
    withDisk { $0.killProcess() }
  }

  /// Cuts the power and turns it on again.
  public func losePower() {
    withDisk { $0.losePower() }
  }

  /// Turns the power on after ``SimulatedFault/powerLoss``, and takes back what else was scheduled.
  ///
  /// Where the power is on it only does the latter.
  public func restart() {
    withDisk { $0.restart() }
  }

  // MARK: From outside

  /// The content of a file as programs see it, or `nil` where there is none; it is no operation.
  ///
  /// - Parameter path: The file.
  public func content(at path: String) -> [UInt8]? {
    withDisk { $0.content(at: path) }
  }

  /// Puts a file in place, durably, as if it had always been there; it is no operation.
  ///
  /// - Parameters:
  ///   - content: The content.
  ///   - path: The file; its directory must exist.
  /// - Throws: `FileError`.
  public func place(_ content: [UInt8], at path: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.place(content, at: path) }
  }

  // MARK: Operations

  /// Opens a file; see `FileSystem`.
  public func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenFile {
    let number = try onDisk { disk throws(FileError) in try disk.open(path, mode) }
    return SimulatedFile(fileSystem: self, number: number, path: path)
  }

  /// Gives a file another name; see `FileSystem`.
  public func rename(_ path: String, to newPath: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.rename(path, to: newPath) }
  }

  /// Removes a file; see `FileSystem`.
  public func removeFile(at path: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.removeFile(at: path) }
  }

  /// Makes a directory; see `FileSystem`.
  public func createDirectory(at path: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.createDirectory(at: path) }
  }

  /// Makes the names in a directory durable; see `FileSystem`.
  public func synchronizeDirectory(at path: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.synchronizeDirectory(at: path) }
  }

  /// Lists a directory, in order; see `FileSystem`.
  public func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try onDisk { disk throws(FileError) in try disk.contentsOfDirectory(at: path) }
  }

  /// Looks at a path; see `FileSystem`.
  public func attributes(at path: String) throws(FileError) -> FileAttributes? {
    try onDisk { disk throws(FileError) in try disk.attributes(at: path) }
  }

  /// Returns `false`: nothing is mounted; see `FileSystem`.
  public func isMountPoint(at path: String) -> Bool { false }

  /// Makes a path absolute, starting at "/"; see `FileSystem`.
  public func canonicalPath(of path: String) throws(FileError) -> String {
    try onDisk { disk throws(FileError) in try disk.canonicalPath(of: path) }
  }

  func withDisk<Result: Sendable>(_ body: (inout SimulatedDisk) -> Result) -> Result {
    disk.withLock { body(&$0) }
  }

  func onDisk<Result: Sendable>(
    _ body: (inout SimulatedDisk) throws(FileError) -> Result
  ) throws(FileError) -> Result {
    try disk.withLock { (disk) throws(FileError) in try body(&disk) }
  }
}
