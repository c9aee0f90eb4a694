import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The state of a ``SimulatedFileSystem``: its files, the open files, and the scheduled faults.
struct SimulatedDisk {
  private static let root = 0

  private var nodes: [Int: SimulatedNode] = [SimulatedDisk.root: SimulatedNode(isDirectory: true, permissions: 0o700)]
  private var nextNode = 1

  /// The changes of names that are not durable yet, in order.
  private var nameChanges: [SimulatedNameChange] = []

  /// The node of each open file, and whether the file is open for reading only.
  private var openFiles: [Int: (node: Int, isReadOnly: Bool)] = [:]
  private var nextFile = 1

  private var generator: SeededGenerator
  /// The faults of later operations, by their numbers.
  var faults: [Int: SimulatedFault] = [:]
  private(set) var operationCount = 0
  private(set) var hasPower = true
  var capacity: Int?

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
  }

  // MARK: Faults

  mutating func killProcess() {
    openFiles.removeAll()
    for node in nodes.keys { nodes[node]?.locks = [:] }
  }

  mutating func losePower() {
    killProcess()
    // Each change of a name survives or is lost independently, because a file system may write any directory block
    // first.
    for change in nameChanges where Bool.random(using: &generator) { makeDurable(change) }
    nameChanges.removeAll()
    for node in nodes.keys.sorted() { nodes[node]?.losePower(using: &generator) }
    removeUnreachableNodes()
    hasPower = true
  }

  mutating func restart() {
    if !hasPower { losePower() }
    faults = [:]
  }

  private mutating func removeUnreachableNodes() {
    var linkCounts: [Int: Int] = [:]
    var pending = [SimulatedDisk.root]
    while let node = pending.popLast() {
      linkCounts[node, default: 0] += 1
      if linkCounts[node] == 1 { pending.append(contentsOf: (nodes[node]?.names ?? [:]).values) }
    }
    nodes = nodes.filter { linkCounts[$0.key] != nil }
    for (node, count) in linkCounts { nodes[node]?.linkCount = count }
  }

  /// The course of an operation.
  private enum Course {
    case normal
    case short
    /// The operation is done, but reported as failed.
    case failure(Int32)
    /// The operation is done in part or not at all; then the power is lost.
    case powerLoss
  }

  /// Counts an operation and applies the fault that was scheduled for it.
  private mutating func begin(_ operation: FileError.Operation, _ path: String) throws(FileError) -> Course {
    guard hasPower else { throw FileError(operation, path: path, errorNumber: EIO) }
    operationCount += 1
    switch faults[operationCount] {
    case nil: return .normal
    case .shortTransfer: return .short
    case .error(let errorNumber): throw FileError(operation, path: path, errorNumber: errorNumber)
    case .errorAfterwards(let errorNumber):
      guard operation != .synchronize else { throw FileError(operation, path: path, errorNumber: errorNumber) }
      return .failure(errorNumber)
    case .powerLoss:
      hasPower = false
      return .powerLoss
    }
  }

  /// Ends an operation, and throws if the power was lost during the operation or the operation must fail.
  private func end(_ course: Course, _ operation: FileError.Operation, _ path: String) throws(FileError) {
    switch course {
    case .normal, .short: return
    case .failure(let errorNumber): throw FileError(operation, path: path, errorNumber: errorNumber)
    case .powerLoss: throw FileError(operation, path: path, errorNumber: EIO)
    }
  }

  // MARK: Paths

  private static func components(of path: String) -> [Substring] {
    var components: [Substring] = []
    for component in path.split(separator: "/") where component != "." {
      if component == ".." { _ = components.popLast() } else { components.append(component) }
    }
    return components
  }

  /// Returns the node at a path, or `nil` if there is none.
  private func node(at path: String, for operation: FileError.Operation) throws(FileError) -> Int? {
    var node = SimulatedDisk.root
    for component in SimulatedDisk.components(of: path) {
      guard nodes[node]?.isDirectory == true else { throw FileError(operation, path: path, errorNumber: ENOTDIR) }
      guard let next = nodes[node]?.names[String(component)] else { return nil }
      node = next
    }
    return node
  }

  private func directory(at path: String, for operation: FileError.Operation) throws(FileError) -> Int {
    guard let node = try node(at: path, for: operation) else {
      throw FileError(operation, path: path, errorNumber: ENOENT)
    }
    guard nodes[node]?.isDirectory == true else { throw FileError(operation, path: path, errorNumber: ENOTDIR) }
    return node
  }

  /// Returns the place of a name, whether or not it exists.
  private func place(
    of path: String, for operation: FileError.Operation
  ) throws(FileError) -> SimulatedNameChange.Place {
    let (parent, name) = FilePaths.split(path)
    guard !path.isEmpty else { throw FileError(operation, path: path, errorNumber: ENOENT) }
    // The root and paths that end in dots have no name that an operation could change.
    guard !name.isEmpty, name != ".", name != ".." else {
      throw FileError(operation, path: path, errorNumber: EISDIR)
    }
    guard name.utf8.count <= 255 else { throw FileError(operation, path: path, errorNumber: ENAMETOOLONG) }
    return SimulatedNameChange.Place(directory: try directory(at: parent, for: operation), name: name)
  }

  // MARK: Names

  private func node(at place: SimulatedNameChange.Place) -> Int? {
    nodes[place.directory]?.names[place.name]
  }

  /// Applies a change of names that programs see, but that is not durable yet.
  private mutating func change(_ change: SimulatedNameChange) {
    if let removed = change.removed { show(nil, at: removed) }
    if let (place, node) = change.added { show(node, at: place) }
    nameChanges.append(change)
  }

  private mutating func show(_ node: Int?, at place: SimulatedNameChange.Place) {
    if let old = self.node(at: place) { nodes[old]?.linkCount -= 1 }
    if let node { nodes[node]?.linkCount += 1 }
    nodes[place.directory]?.names[place.name] = node
  }

  private mutating func makeDurable(_ change: SimulatedNameChange) {
    if let removed = change.removed { nodes[removed.directory]?.durableNames[removed.name] = nil }
    if let (place, node) = change.added { nodes[place.directory]?.durableNames[place.name] = node }
  }

  /// Synchronizes all changes of the names in a directory, together with the changes that must precede them.
  private mutating func synchronizeNames(in directory: Int) {
    // A rename out of another directory includes the earlier changes there. Otherwise, the old name could come back.
    var directories: Set = [directory]
    var chosen: Set<Int> = []
    for (index, change) in nameChanges.enumerated().reversed() where !directories.isDisjoint(with: change.directories) {
      directories.formUnion(change.directories)
      chosen.insert(index)
    }
    for index in chosen.sorted() { makeDurable(nameChanges[index]) }
    nameChanges = nameChanges.enumerated().filter { !chosen.contains($0.offset) }.map(\.element)
  }

  // MARK: Operations on names

  mutating func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> Int {
    let course = try begin(.open, path)
    let place = try place(of: path, for: .open)
    var node = node(at: place)
    if let node {
      if mode == .createNew { throw FileError(.open, path: path, errorNumber: EEXIST) }
      if nodes[node]?.isDirectory == true { throw FileError(.open, path: path, errorNumber: EISDIR) }
    } else {
      if mode == .read || mode == .readWrite { throw FileError(.open, path: path, errorNumber: ENOENT) }
      node = add(SimulatedNode(isDirectory: false, permissions: 0o600), at: place)
    }
    try end(course, .open, path)
    let file = nextFile
    nextFile += 1
    openFiles[file] = node.map { ($0, mode == .read) }
    return file
  }

  private mutating func add(_ node: SimulatedNode, at place: SimulatedNameChange.Place) -> Int {
    let number = nextNode
    nextNode += 1
    nodes[number] = node
    change(SimulatedNameChange(added: (place, number)))
    return number
  }

  mutating func rename(_ path: String, to newPath: String) throws(FileError) {
    let course = try begin(.rename, newPath)
    let place = try place(of: path, for: .rename)
    let newPlace = try self.place(of: newPath, for: .rename)
    guard let node = node(at: place) else { throw FileError(.rename, path: path, errorNumber: ENOENT) }
    if let errorNumber = obstacle(to: node, takingThePlaceOf: self.node(at: newPlace), in: newPlace.directory) {
      throw FileError(.rename, path: newPath, errorNumber: errorNumber)
    }
    if place != newPlace { change(SimulatedNameChange(removed: place, added: (newPlace, node))) }
    try end(course, .rename, newPath)
  }

  /// Returns the error number of a rename that is not possible, or `nil`.
  private func obstacle(to node: Int, takingThePlaceOf replaced: Int?, in directory: Int) -> Int32? {
    guard nodes[node]?.isDirectory == true else {
      return replaced.flatMap { nodes[$0] }?.isDirectory == true ? EISDIR : nil
    }
    if contains(node, directory) { return EINVAL }
    guard let replaced, replaced != node, let replaced = nodes[replaced] else { return nil }
    guard replaced.isDirectory else { return ENOTDIR }
    return replaced.names.isEmpty ? nil : ENOTEMPTY
  }

  /// Returns whether `inner` is the directory `outer`, or is inside it at any depth.
  private func contains(_ outer: Int, _ inner: Int) -> Bool {
    outer == inner || (nodes[outer]?.names.values.contains { contains($0, inner) } ?? false)
  }

  mutating func removeFile(at path: String) throws(FileError) {
    let course = try begin(.removeFile, path)
    let place = try place(of: path, for: .removeFile)
    guard let node = node(at: place) else { throw FileError(.removeFile, path: path, errorNumber: ENOENT) }
    guard nodes[node]?.names.isEmpty != false else {
      throw FileError(.removeFile, path: path, errorNumber: ENOTEMPTY)
    }
    change(SimulatedNameChange(removed: place))
    try end(course, .removeFile, path)
  }

  mutating func createDirectory(at path: String) throws(FileError) {
    let course = try begin(.createDirectory, path)
    let place = try place(of: path, for: .createDirectory)
    guard node(at: place) == nil else { throw FileError(.createDirectory, path: path, errorNumber: EEXIST) }
    _ = add(SimulatedNode(isDirectory: true, permissions: 0o700), at: place)
    try end(course, .createDirectory, path)
  }

  mutating func synchronizeDirectory(at path: String) throws(FileError) {
    let course = try begin(.synchronizeDirectory, path)
    let node = try directory(at: path, for: .synchronizeDirectory)
    // If the power is lost, the changes of names stay pending.
    try end(course, .synchronizeDirectory, path)
    synchronizeNames(in: node)
  }

  mutating func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    let course = try begin(.contentsOfDirectory, path)
    let node = try directory(at: path, for: .contentsOfDirectory)
    try end(course, .contentsOfDirectory, path)
    return (nodes[node]?.names ?? [:]).keys.sorted()
  }

  mutating func attributes(at path: String) throws(FileError) -> FileAttributes? {
    let course = try begin(.attributes, path)
    let node = try node(at: path, for: .attributes)
    try end(course, .attributes, path)
    return node.flatMap(attributes(ofNode:))
  }

  private func attributes(ofNode number: Int) -> FileAttributes? {
    nodes[number].map { node in
      FileAttributes(
        kind: node.isDirectory ? .directory : .file, size: Int64(node.content.count),
        modificationTime: node.modificationTime, permissions: node.permissions, owner: node.owner,
        linkCount: node.linkCount,
        identity: FileAttributes.Identity(device: 0, inode: UInt64(number)))
    }
  }

  mutating func canonicalPath(of path: String) throws(FileError) -> String {
    let course = try begin(.canonicalPath, path)
    let canonical = "/" + SimulatedDisk.components(of: path).joined(separator: "/")
    if canonical != "/" { _ = try place(of: canonical, for: .canonicalPath) }
    try end(course, .canonicalPath, path)
    return canonical
  }

  // MARK: Operations on open files

  /// Returns the node of an open file.
  ///
  /// - Throws: `EBADF` if the process was killed or the file was closed.
  private func node(ofFile file: Int, _ operation: FileError.Operation, _ path: String) throws(FileError) -> Int {
    guard let open = openFiles[file] else { throw FileError(operation, path: path, errorNumber: EBADF) }
    if open.isReadOnly, operation == .write || operation == .truncate {
      throw FileError(operation, path: path, errorNumber: operation == .write ? EBADF : EINVAL)
    }
    return open.node
  }

  mutating func read(
    _ file: Int, _ path: String, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(FileError) -> Int {
    let course = try begin(.read, path)
    let content = nodes[try node(ofFile: file, .read, path)]?.content ?? []
    var available = content.dropFirst(offset).prefix(buffer.count)
    if case .short = course { available = available.prefix((available.count + 1) / 2) }
    buffer.copyBytes(from: available)
    try end(course, .read, path)
    return available.count
  }

  mutating func write(
    _ file: Int, _ path: String, _ bytes: UnsafeRawBufferPointer, at offset: Int
  ) throws(FileError) -> Int {
    let course = try begin(.write, path)
    let node = try node(ofFile: file, .write, path)
    var count = bytes.count
    if case .short = course { count = (count + 1) / 2 }
    if let capacity {
      let size = nodes[node]?.content.count ?? 0
      let free = max(0, capacity - usedSpace)
      count = min(count, free + max(0, size - offset))
      if count == 0, !bytes.isEmpty { throw FileError(.write, path: path, errorNumber: ENOSPC) }
    }
    nodes[node]?.change(.write(bytes: Array(bytes.prefix(count)), offset: offset))
    try end(course, .write, path)
    return count
  }

  /// The number of bytes in all files that have a name or are open.
  private var usedSpace: Int {
    let open = Set(openFiles.values.map(\.node))
    return nodes.reduce(0) { $0 + ($1.value.linkCount > 0 || open.contains($1.key) ? $1.value.content.count : 0) }
  }

  /// Runs an operation that changes an open file.
  mutating func change(
    _ file: Int, _ path: String, by operation: FileError.Operation, _ body: (inout SimulatedNode?) -> Void
  ) throws(FileError) {
    let course = try begin(operation, path)
    let number = try node(ofFile: file, operation, path)
    body(&nodes[number])
    try end(course, operation, path)
  }

  mutating func synchronize(_ file: Int, _ path: String) throws(FileError) {
    let node = try node(ofFile: file, .synchronize, path)
    let course: Course
    do throws(FileError) {
      course = try begin(.synchronize, path)
    } catch {
      // EINTR means that the synchronization was not attempted.
      if hasPower, error.errorNumber != EINTR { nodes[node]?.loseContentChanges(using: &generator) }
      throw error
    }
    // If the power is lost, the changes of the content stay pending.
    try end(course, .synchronize, path)
    nodes[node]?.synchronizeContent()
  }

  /// Returns the size of an open file, which a system knows without the disk, so that no operation is counted.
  func size(_ file: Int, _ path: String) throws(FileError) -> Int64 {
    let node = try node(ofFile: file, .attributes, path)
    guard let size = attributes(ofNode: node)?.size else {
      throw FileError(.attributes, path: path, errorNumber: EBADF)
    }
    return size
  }

  mutating func attributes(_ file: Int, _ path: String) throws(FileError) -> FileAttributes {
    let course = try begin(.attributes, path)
    let node = try node(ofFile: file, .attributes, path)
    try end(course, .attributes, path)
    guard let attributes = attributes(ofNode: node) else {
      throw FileError(.attributes, path: path, errorNumber: EBADF)
    }
    return attributes
  }

  mutating func lock(_ file: Int, _ path: String, _ kind: FileLock.Kind) throws(FileError) -> Bool {
    let course = try begin(.lock, path)
    let node = try node(ofFile: file, .lock, path)
    try end(course, .lock, path)
    let others = (nodes[node]?.locks ?? [:]).filter { $0.key != file }
    guard others.isEmpty || (kind == .shared && others.values.allSatisfy { $0 == .shared }) else { return false }
    nodes[node]?.locks[file] = kind
    return true
  }

  /// Closes a file.
  ///
  /// Closing cannot fail, because data that must be durable was synchronized before.
  mutating func close(_ file: Int) {
    guard let node = openFiles.removeValue(forKey: file)?.node else { return }
    nodes[node]?.locks[file] = nil
  }

  // MARK: Direct access

  func content(at path: String) -> [UInt8]? {
    var node = nodes[SimulatedDisk.root]
    for component in SimulatedDisk.components(of: path) {
      node = node?.names[String(component)].flatMap { nodes[$0] }
    }
    return node.flatMap { $0.isDirectory ? nil : $0.content }
  }

  /// Creates a durable file, as if it had always existed.
  mutating func place(_ content: [UInt8], at path: String) throws(FileError) {
    let place = try place(of: path, for: .write)
    let number = node(at: place) ?? add(SimulatedNode(isDirectory: false, permissions: 0o600), at: place)
    guard nodes[number]?.isDirectory == false else { throw FileError(.write, path: path, errorNumber: EISDIR) }
    // Any other pending change of this name would otherwise take effect after this one.
    for index in nameChanges.indices {
      if nameChanges[index].removed == place { nameChanges[index].removed = nil }
      if nameChanges[index].added?.place == place { nameChanges[index].added = nil }
    }
    nameChanges.removeAll { $0.directories.isEmpty }
    nodes[place.directory]?.durableNames[place.name] = number
    nodes[number]?.content = content
    nodes[number]?.modificationTime += 1
    nodes[number]?.durableContent = content
    nodes[number]?.contentChanges.removeAll()
  }
}
