var bytes: AnyDataStore<[UInt8]> { standIn() }
var byTag: StoreIndex<Note> { standIn() }
var notes: IndexedStore<AnyDataStore<[UInt8]>, Note> { standIn() }
