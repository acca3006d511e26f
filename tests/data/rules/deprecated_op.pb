
	
aTopK"ª