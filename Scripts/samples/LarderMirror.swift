struct NotEqualYet: Error {}

var old: AnyDataStore<User> { standIn() }
var new: AnyDataStore<User> { standIn() }
var mirror: MirroredStore<AnyDataStore<User>, AnyDataStore<User>> { standIn() }
let mirrors = Locked<[String: any StoreMirror]>([:])
