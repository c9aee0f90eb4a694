import Foundation
import LarderFiles

/// The state of a ``SimulatedFileSystem``: its files, the open files, and the scheduled faults.
struct SimulatedDisk {
  static let root = 0

  var nodes: [Int: SimulatedNode] = [SimulatedDisk.root: SimulatedNode(isDirectory: true, permissions: 0o700)]
  private var nextNode = 1

  /// The changes of names that are not durable yet, in order.
  var nameChanges: [SimulatedNameChange] = []

  /// The node of each open file, and whether the file is open for reading only.
  var openFiles: [Int: (node: Int, isReadOnly: Bool)] = [:]
  private var nextFile = 1

  var generator: SeededGenerator
  /// The faults of later operations, by their numbers.
  var faults: [Int: SimulatedFault] = [:]
  private(set) var operationCount = 0
  /// The last operation that had a fault, and its path.
  private(set) var lastFaultyOperation: String?
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
  enum Course {
    case normal
    case short
    /// The operation is done, but reported as failed.
    case failure(Int32)
    /// The operation is done in part or not at all; then the power is lost.
    case powerLoss
  }

  /// Counts an operation and applies the fault that was scheduled for it.
  mutating func begin(_ operation: FileError.Operation, _ path: String) throws(FileError) -> Course {
    guard hasPower else { throw FileError(operation, path: path, errorNumber: EIO) }
    operationCount += 1
    if faults[operationCount] != nil { lastFaultyOperation = "\(operation) \(path)" }
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
  func end(_ course: Course, _ operation: FileError.Operation, _ path: String) throws(FileError) {
    switch course {
    case .normal, .short: return
    case .failure(let errorNumber): throw FileError(operation, path: path, errorNumber: errorNumber)
    case .powerLoss: throw FileError(operation, path: path, errorNumber: EIO)
    }
  }

  // MARK: Paths

  static func components(of path: String) -> [Substring] {
    var components: [Substring] = []
    for component in path.split(separator: "/") where component != "." {
      if component == ".." { _ = components.popLast() } else { components.append(component) }
    }
    return components
  }

  /// Returns the node at a path, or `nil` if there isn't one.
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
  func place(
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

  func node(at place: SimulatedNameChange.Place) -> Int? {
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

  mutating func add(_ node: SimulatedNode, at place: SimulatedNameChange.Place) -> Int {
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

  func attributes(ofNode number: Int) -> FileAttributes? {
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
}
