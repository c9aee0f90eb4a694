import LarderJSON

struct InUse: Error {}

var fileSystem: POSIXFileSystem { standIn() }
var file: any OpenStoreFile { standIn() }
var record: [UInt8] { standIn() }
var lines: [String] { standIn() }
var document: [UInt8] { standIn() }
var endOfLastRecord: Int64 { standIn() }
var lock: FileLock { standIn() }
var name: String { standIn() }
var conflict: StoreError { standIn() }
