import Larder
public import LarderFiles

/// An in-memory file system that fails and loses power as real ones do, at any operation, controlled by a seed.
///
/// Pass it to a store instead of the real file system, run the store, cut the power, and check what the store recovers:
///
/// ```swift
/// let disk = SimulatedFileSystem(seed: seed)
/// disk.schedule(.powerLoss, atOperation: 17)
/// try? await write(to: JSONFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk))
/// disk.restart()
/// let store = try await JSONFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk)
/// ```
///
/// A power loss has the following effects:
///
/// - Synchronized data is kept, even if it shares a sector with data that was not synchronized.
/// - A write that was not synchronized is kept as a whole, not at all, in some sectors of 512 bytes, or as garbage in
///   some sectors. The file can have the length from before or after the write.
/// - Each creation, rename and removal in a directory that was not synchronized is kept or undone independently. So a
///   synchronized file is gone if its name was not synchronized, and a replaced file is back if its rename is undone.
/// - A rename from one directory into another happens in both or in neither. It is durable once either directory was
///   synchronized.
/// - Permissions, owners and times are durable immediately.
///
/// The file system starts with an empty directory "/" and has no symbolic or hard links. You can use it from several
/// threads at the same time.
public final class SimulatedFileSystem: StoreFileSystem {
  private let disk: Locked<SimulatedDisk>

  /// Creates an empty file system.
  ///
  /// - Parameter seed: The seed of all random decisions.
  public init(seed: UInt64) {
    disk = Locked(SimulatedDisk(seed: seed))
  }

  // MARK: Faults

  /// Schedules a fault for an operation.
  ///
  /// - Parameters:
  ///   - fault: The fault.
  ///   - number: The number of the operation, where the first operation of the file system is 1; see
  ///     ``operationCount``.
  public func schedule(_ fault: SimulatedFault, atOperation number: Int) {
    withDisk { $0.faults[number] = fault }
  }

  /// Removes all scheduled faults.
  public func clearFaults() {
    withDisk { $0.faults = [:] }
  }

  /// The number of operations so far, not counting the closing of files.
  public var operationCount: Int {
    withDisk { $0.operationCount }
  }

  /// The last operation that had a fault and its path, such as `write /store.json`, or `nil` if there was no fault.
  public var lastFaultyOperation: String? {
    withDisk { $0.lastFaultyOperation }
  }

  /// A Boolean value that indicates whether the power is on.
  public var hasPower: Bool {
    withDisk { $0.hasPower }
  }

  /// The maximum total size of all files in bytes.
  ///
  /// Defaults to `nil`, meaning no limit. A write that exceeds the limit writes the bytes that fit, or fails with `ENOSPC` if
  /// none do.
  public var capacity: Int? {
    get { withDisk { $0.capacity } }
    set { withDisk { $0.capacity = newValue } }
  }

  /// Ends every process, as SIGKILL does.
  ///
  /// Open files and locks are gone, and written data is kept.
  public func killProcess() {
    withDisk { $0.killProcess() }
  }

  /// Cuts the power and turns it on again.
  ///
  /// ```swift
  /// try await store.setValue(1, forKey: "a")
  /// disk.losePower()
  /// let reopened = try await JSONFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk)
  /// ```
  public func losePower() {
    withDisk { $0.losePower() }
  }

  /// Turns the power on after ``SimulatedFault/powerLoss`` and removes all scheduled faults.
  ///
  /// If the power is on, this method only removes the scheduled faults.
  public func restart() {
    withDisk { $0.restart() }
  }

  // MARK: Direct access

  /// Returns the content of a file as programs see it, or `nil` if there is no file.
  ///
  /// This does not count as an operation.
  ///
  /// ```swift
  /// #expect(disk.content(at: "/store.json") == before)
  /// ```
  ///
  /// - Parameter path: The path of the file.
  public func content(at path: String) -> [UInt8]? {
    withDisk { $0.content(at: path) }
  }

  /// Creates a durable file, as if it had always existed.
  ///
  /// This does not count as an operation.
  ///
  /// ```swift
  /// try disk.place(Array("{}".utf8), at: "/store.json")
  /// ```
  ///
  /// - Parameters:
  ///   - content: The content of the file.
  ///   - path: The path of the file, whose directory must exist.
  /// - Throws: `FileError` if the path is not valid, or is that of a directory.
  public func place(_ content: [UInt8], at path: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.place(content, at: path) }
  }

  // MARK: Operations

  /// Opens a file; see `StoreFileSystem`.
  public func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
    let number = try onDisk { disk throws(FileError) in try disk.open(path, mode) }
    return SimulatedFile(fileSystem: self, number: number, path: path)
  }

  /// Renames a file; see `StoreFileSystem`.
  public func rename(_ path: String, to newPath: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.rename(path, to: newPath) }
  }

  /// Removes a file; see `StoreFileSystem`.
  public func removeFile(at path: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.removeFile(at: path) }
  }

  /// Creates a directory; see `StoreFileSystem`.
  public func createDirectory(at path: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.createDirectory(at: path) }
  }

  /// Synchronizes the names in a directory; see `StoreFileSystem`.
  public func synchronizeDirectory(at path: String) throws(FileError) {
    try onDisk { disk throws(FileError) in try disk.synchronizeDirectory(at: path) }
  }

  /// Returns the sorted names in a directory; see `StoreFileSystem`.
  public func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try onDisk { disk throws(FileError) in try disk.contentsOfDirectory(at: path) }
  }

  /// Returns the attributes of a file or directory; see `StoreFileSystem`.
  public func attributes(at path: String) throws(FileError) -> FileAttributes? {
    try onDisk { disk throws(FileError) in try disk.attributes(at: path) }
  }

  /// Returns `false`, because nothing can be mounted; see `StoreFileSystem`.
  public func isMountPoint(at path: String) -> Bool { false }

  /// Returns the absolute form of a path, resolved from "/"; see `StoreFileSystem`.
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

/// An open file of a ``SimulatedFileSystem``.
private final class SimulatedFile: OpenStoreFile {
  private let fileSystem: SimulatedFileSystem
  private let number: Int
  private let path: String

  init(fileSystem: SimulatedFileSystem, number: Int, path: String) {
    self.fileSystem = fileSystem
    self.number = number
    self.path = path
  }

  deinit {
    fileSystem.withDisk { $0.close(number) }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try fileSystem.onDisk { disk throws(FileError) in try disk.read(number, path, into: buffer, at: Int(offset)) }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
    try fileSystem.onDisk { disk throws(FileError) in try disk.write(number, path, bytes, at: Int(offset)) }
  }

  func truncate(to size: Int64) throws(FileError) {
    try change(by: .truncate) { $0?.change(.truncate(size: Int(size))) }
  }

  func synchronize() throws(FileError) {
    try fileSystem.onDisk { disk throws(FileError) in try disk.synchronize(number, path) }
  }

  func attributes() throws(FileError) -> FileAttributes {
    try fileSystem.onDisk { disk throws(FileError) in try disk.attributes(number, path) }
  }

  func size() throws(FileError) -> Int64 {
    try fileSystem.onDisk { disk throws(FileError) in try disk.size(number, path) }
  }

  func setPermissions(_ permissions: UInt32) throws(FileError) {
    try change(by: .setPermissions) { $0?.permissions = permissions }
  }

  func setOwner(_ owner: FileAttributes.Owner) throws(FileError) {
    try change(by: .setOwner) { $0?.owner = owner }
  }

  func setModificationTime(_ time: Int64) throws(FileError) {
    try change(by: .setModificationTime) { $0?.modificationTime = time }
  }

  private func change(
    by operation: FileError.Operation, _ body: (inout SimulatedNode?) -> Void
  ) throws(FileError) {
    try fileSystem.onDisk { disk throws(FileError) in try disk.change(number, path, by: operation, body) }
  }

  func lock(_ kind: FileLock.Kind) throws(FileError) -> Bool {
    try fileSystem.onDisk { disk throws(FileError) in try disk.lock(number, path, kind) }
  }

  func close() {
    fileSystem.withDisk { $0.close(number) }
  }
}

/// A fault that a ``SimulatedFileSystem`` applies to an operation.
///
/// ```swift
/// disk.schedule(.error(ENOSPC), atOperation: 3)  // the disk is full at the third call
/// ```
public enum SimulatedFault: Sendable, Hashable {
  /// The operation fails with a value of `errno`, such as `EIO`, and changes nothing.
  ///
  /// A failed synchronization of a file loses some or all of the changes that it should have made durable, as real
  /// kernels do. The changes can still be read and the next synchronization succeeds, but a power loss shows that they
  /// were never written. After `EINTR`, nothing is lost. A failed synchronization of a directory keeps its changes for
  /// the next one.
  case error(Int32)

  /// The operation is done, but fails with a value of `errno`, as on a network or a failing disk.
  ///
  /// A synchronization of a file loses changes, as with ``error(_:)``.
  case errorAfterwards(Int32)

  /// A write or read transfers only part of the bytes and returns their number. Other operations are not affected.
  case shortTransfer

  /// The power is lost during the operation, which may be done, partly done, or not done.
  ///
  /// The operation fails, as do all later operations until ``SimulatedFileSystem/restart()``.
  case powerLoss
}

extension SimulatedFault {
  /// The value of `errno` with which the operation fails; `nil` if it does not fail, or if all operations fail.
  var errorNumber: Int32? {
    switch self {
    case .error(let number), .errorAfterwards(let number): number
    case .shortTransfer, .powerLoss: nil
    }
  }
}
