import LarderConfiguration
import LarderExpiry
import LarderJSON
import Synchronization

let unread = Atomic(false)
var store: ObservingStore<AnyDataStore<Settings>> { standIn() }
var notes: ObservingStore<AnyDataStore<Note>> { standIn() }
var users: ObservingStore<AnyDataStore<User>> { standIn() }
var settings: ObservedValue<Settings> { standIn() }
