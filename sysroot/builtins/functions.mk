# What libgcc has for x86-64, without decimal floating point, processor detection (fenced code may not
# ask), split stacks and trampolines. The names are gcc's.

LIBGCC2 := _muldi3 _negdi2 _lshrdi3 _ashldi3 _ashrdi3 _cmpdi2 _ucmpdi2 _absvsi2 _absvdi2 _addvsi3 _addvdi3 \
	_subvsi3 _subvdi3 _mulvsi3 _mulvdi3 _negvsi2 _negvdi2 _ffssi2 _ffsdi2 _clz _clzsi2 _clzdi2 _ctzsi2 \
	_ctzdi2 _popcount_tab _popcountsi2 _popcountdi2 _paritysi2 _paritydi2 _powisf2 _powidf2 _powixf2 \
	_powitf2 _mulsc3 _muldc3 _mulxc3 _multc3 _divsc3 _divdc3 _divxc3 _divtc3 _mulhc3 _divhc3 _bswapsi2 \
	_bswapdi2 _clrsbsi2 _clrsbdi2 _fixunssfsi _fixunsdfsi _fixunsxfsi _fixsfdi _fixdfdi _fixxfdi \
	_fixunssfdi _fixunsdfdi _fixunsxfdi _floatdisf _floatdidf _floatdixf _floatundisf _floatundidf \
	_floatundixf _divdi3 _moddi3 _divmoddi4 _udivdi3 _umoddi3 _udivmoddi4 __gcc_bcmp

SOFTFP := addtf3 divtf3 multf3 negtf2 subtf3 unordtf2 eqtf2 getf2 letf2 eqhf2 \
	fixtfsi fixunstfsi floatsitf floatunsitf fixtfdi fixunstfdi floatditf floatunditf \
	fixtfti fixunstfti floattitf floatuntitf fixhfti fixunshfti floattihf floatuntihf \
	extendhfsf2 extendhfdf2 extendhftf2 extendhfxf2 extendsfdf2 extendsftf2 extenddftf2 extendxftf2 \
	trunctfhf2 truncxfhf2 truncdfhf2 truncsfhf2 trunctfsf2 truncdfsf2 trunctfdf2 trunctfxf2
